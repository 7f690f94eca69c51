"""Leases in the database, by the database's clock: replicas with wrong clocks agree."""

from sqlalchemy import delete, or_, select

from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import leases


class SqlLeases(StorePart):
    """Who owns what, for a while."""

    def acquire_lease(self, name: str, owner: str, *, ttl_s: float) -> bool:
        """Take or renew a lease; False where someone else has it."""
        now = self._database.now_unix_s
        fresh = {"owner": owner, "expire_unix_s": now + ttl_s}
        take = self._database.insert(leases).values(name=name, **fresh)
        free = or_(leases.c.owner == owner, leases.c.expire_unix_s <= now)
        take = take.on_conflict_do_update(index_elements=["name"], set_=fresh, where=free)
        with self._database.writing() as connection:
            return connection.execute(take.returning(leases.c.owner)).scalar() is not None

    def release_lease(self, name: str, owner: str) -> None:
        """Give a lease back; nothing happens where it is someone else's."""
        mine = (leases.c.name == name) & (leases.c.owner == owner)
        with self._database.writing() as connection:
            connection.execute(delete(leases).where(mine))

    def lease_owner(self, name: str) -> str | None:
        """Return who has a lease that has not run out."""
        holds = (leases.c.name == name) & (leases.c.expire_unix_s > self._database.now_unix_s)
        with self._database.reading() as connection:
            owner: str | None = connection.execute(select(leases.c.owner).where(holds)).scalar()
            return owner
