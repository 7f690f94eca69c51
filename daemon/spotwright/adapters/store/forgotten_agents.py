"""Agents that nobody has seen for long, and boots that are long over."""

from sqlalchemy import Connection, delete, exists, func, select

from spotwright.adapters.store.tables import agent_boots, agents, batches, commands


def prune_agents(connection: Connection, before_unix_s: float, *, limit: int) -> int:
    """Forget at most `limit` agents and as many boots that were last seen before.

    Agents that are connected stay, and so do boots of which there are batches. Nobody is waited
    for: what someone else holds is left for the next time.
    """
    before_ms = int(before_unix_s * 1000)
    seen = exists().where(
        agent_boots.c.agent_id == agents.c.agent_id, agent_boots.c.last_seen_unix_ms >= before_ms
    )
    gone = select(agents.c.agent_id).where(
        agents.c.session_id == "", agents.c.open_unix_s < before_unix_s, ~seen
    )
    gone = gone.limit(limit).with_for_update(skip_locked=True)
    forget = delete(agents).where(agents.c.agent_id.in_(gone)).returning(agents.c.agent_id)
    names = connection.scalars(forget).all()
    if names:
        connection.execute(delete(commands).where(commands.c.agent_id.in_(names)))
    return len(names) + _prune_boots(connection, before_ms, limit=limit)


def _prune_boots(connection: Connection, before_ms: int, *, limit: int) -> int:
    is_latest = exists().where(
        agents.c.agent_id == agent_boots.c.agent_id, agents.c.boot_id == agent_boots.c.boot_id
    )
    has_batches = exists().where(batches.c.boot_number == agent_boots.c.boot_number)
    old = select(agent_boots.c.boot_number).where(
        func.coalesce(agent_boots.c.last_seen_unix_ms, 0) < before_ms, ~is_latest, ~has_batches
    )
    old = old.limit(limit).with_for_update(skip_locked=True)
    forget = delete(agent_boots).where(agent_boots.c.boot_number.in_(old))
    return connection.execute(forget).rowcount
