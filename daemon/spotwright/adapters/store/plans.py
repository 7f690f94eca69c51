"""Plans in the database."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, literal, or_, select

from spotwright.adapters.store.requests import claim_request, request_target
from spotwright.adapters.store.store_part import StorePart
from spotwright.adapters.store.tables import plans
from spotwright.domain.errors import NotFoundError
from spotwright.domain.job_run import PlanRecord
from spotwright.usecases.store_ports import PageStart

_KIND = "plan"


class SqlPlans(StorePart):
    """Plans that were made."""

    def add_plan(self, plan: PlanRecord, *, request_id: str = "") -> PlanRecord:
        """Keep a plan; where this request made one before, return that one instead."""
        with self._database.writing() as connection:
            before = claim_request(
                self._database,
                connection,
                kind=_KIND,
                request_id=request_id,
                target_id=plan.plan_id,
            )
            if before is None:
                keep = self._database.insert(plans).on_conflict_do_nothing()
                connection.execute(keep, asdict(plan))
            return _plan(connection, before or plan.plan_id)

    def plan_of_request(self, request_id: str) -> PlanRecord | None:
        """Return the plan that a request made."""
        with self._database.reading() as connection:
            plan_id = request_target(connection, kind=_KIND, request_id=request_id)
            return None if plan_id is None else _plan(connection, plan_id)

    def plan(self, plan_id: str) -> PlanRecord:
        """Return a plan, or raise NotFoundError."""
        with self._database.reading() as connection:
            return _plan(connection, plan_id)

    def plans(
        self, *, job_name: str = "", after: PageStart | None = None, limit: int
    ) -> Sequence[PlanRecord]:
        """Return plans, newest first, ties by plan_id; their documents are empty."""
        columns = [c for c in plans.c if c.name != "document"]
        query: Select[Any] = select(*columns, literal(b"").label("document"))
        if job_name:
            query = query.where(plans.c.job_name == job_name)
        if after is not None:
            query = query.where(comes_after(plans, "plan_id", after))
        query = query.order_by(plans.c.create_time.desc(), plans.c.plan_id).limit(limit)
        with self._database.reading() as connection:
            return [_record(row) for row in connection.execute(query)]


def comes_after(table: Table, id_name: str, after: PageStart) -> ColumnElement[bool]:
    """Keep what comes after a place in a list, newest first with ties by name."""
    time, name = table.c.create_time, table.c[id_name]
    return or_(time < after.create_time, and_(time == after.create_time, name > after.last_id))


def _plan(connection: Connection, plan_id: str) -> PlanRecord:
    row = connection.execute(select(plans).where(plans.c.plan_id == plan_id)).one_or_none()
    if row is None:
        raise NotFoundError("plan", plan_id)
    return _record(row)


def _record(row: Row[Any]) -> PlanRecord:
    return PlanRecord(**row._asdict())
