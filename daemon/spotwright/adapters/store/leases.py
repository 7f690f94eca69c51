"""Leases in the database, by the database's clock: replicas with wrong clocks agree."""

from collections.abc import Collection, Set

from sqlalchemy import bindparam, delete, or_

from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import leases


class SqlLeases(StorePart):
    """Who owns what, for a while."""

    def acquire_lease(self, name: str, owner: str, *, ttl_s: float) -> bool:
        """Take or renew a lease; False where someone else has it."""
        return name in self.acquire_leases([name], owner, ttl_s=ttl_s)

    def acquire_leases(self, names: Collection[str], owner: str, *, ttl_s: float) -> Set[str]:
        """Take or renew leases in one step; return those that are not someone else's."""
        if not names:
            return frozenset()
        now = self._database.now_unix_s
        take = self._database.insert(leases).values(expire_unix_s=now + bindparam("ttl_s"))
        fresh = {name: take.excluded[name] for name in ("owner", "expire_unix_s")}
        free = or_(leases.c.owner == take.excluded.owner, leases.c.expire_unix_s <= now)
        take = take.on_conflict_do_update(index_elements=["name"], set_=fresh, where=free)
        # In order, so that replicas that want the same ones never wait for each other in a circle.
        rows = [{"name": name, "owner": owner, "ttl_s": ttl_s} for name in sorted(set(names))]
        with self._database.writing() as connection:
            return frozenset(connection.scalars(take.returning(leases.c.name), rows))

    def release_lease(self, name: str, owner: str) -> None:
        """Give a lease back; nothing happens where it is someone else's."""
        self.release_leases([name], owner)

    def release_leases(self, names: Collection[str], owner: str) -> None:
        """Give leases back in one step; nothing happens to those that are someone else's."""
        rows = [{"lease": name} for name in sorted(set(names))]
        mine = (leases.c.name == bindparam("lease")) & (leases.c.owner == owner)
        if rows:
            with self._database.writing() as connection:
                connection.execute(delete(leases).where(mine), rows)
