"""What is kept, as tables. Migrations make them; a test holds both together."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Moment(TypeDecorator[datetime]):
    """A time as microseconds since 1970: exact, and in order on every back end."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Return what is kept."""
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return the time."""
        return None if value is None else _EPOCH + timedelta(microseconds=value)


# Names sort by their bytes on every back end.
Name = Text().with_variant(Text(collation="C"), "postgresql")
# SQLite numbers rows by itself only where the key is called INTEGER.
RowNumber = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()

plans = Table(
    "plans",
    metadata,
    Column("plan_id", Name, primary_key=True),
    Column("job_name", Name, nullable=False),
    Column("create_time", Moment, nullable=False),
    Column("status", Text, nullable=False),
    Column("cost_usd", Double, nullable=False),
    Column("duration_s", Double, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("job_text", Text, nullable=False),
    Column("job_path", Text, nullable=False),
    Column("model", Text, nullable=False),
    Index("plans_by_time", "create_time", "plan_id"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Name, primary_key=True),
    Column("name", Name, nullable=False),
    Column("plan_id", Name, nullable=False),
    Column("state", Text, nullable=False),
    Column("create_time", Moment, nullable=False),
    Column("update_time", Moment, nullable=False),
    Column("start_time", Moment),
    Column("end_time", Moment),
    Column("progress_samples", Double),
    Column("progress_steps", Double),
    Column("progress_loss", Double),
    Column("progress_fraction", Double),
    Column("controller", Text, nullable=False),
    Column("last_event_sequence", BigInteger, nullable=False),
    Column("course", Text),  # JSON; null: of a job from before there was one
    Index("jobs_by_time", "create_time", "job_id"),
)

job_steps = Table(  # each step once: a batch that comes again is not new
    "job_steps",
    metadata,
    Column("job_id", Name, primary_key=True),
    Column("agent_id", Name, primary_key=True),
    Column("step_count", BigInteger, nullable=False),
    Column("last_step", BigInteger, nullable=False),
    Column("samples", Double),
    Column("loss", Double),
)

events = Table(
    "events",
    metadata,
    Column("job_id", Name, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("time", Moment, nullable=False),
    Column("kind", Name, nullable=False),
    Column("text", Text, nullable=False),
    Column("facts", Text, nullable=False),  # JSON
)

ledger = Table(  # who was seen working for a job
    "ledger",
    metadata,
    Column("job_id", Name, primary_key=True),
    Column("agent_id", Name, primary_key=True),
    Column("start_time", Moment, primary_key=True),
    Column("end_time", Moment, nullable=False),  # of the last sighting
    Column("instance_id", Text, nullable=False),
    Column("instance_type", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("market", Text, nullable=False),
    Column("price_usd_per_hour", Double),
)

progress_marks = Table(
    "progress_marks",
    metadata,
    Column("job_id", Name, primary_key=True),
    Column("time", Moment, primary_key=True),
    Column("fraction", Double, nullable=False),
)

requests = Table(  # what was carried out already, so that asking again changes nothing
    "requests",
    metadata,
    Column("kind", Name, primary_key=True),
    Column("request_id", Name, primary_key=True),
    Column("target_id", Text, nullable=False),
    Column("claim_unix_s", Double, nullable=False),  # by the store's own clock
    Index("requests_by_time", "claim_unix_s"),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Name, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("expire_unix_s", Double, nullable=False),  # by the store's own clock
)

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", Name, primary_key=True),
    Column("name", Name, nullable=False),
    Column("role", Text, nullable=False),
    Column("secret_hash", Text, nullable=False),
    Column("create_time", Moment, nullable=False),
    Column("expire_time", Moment),
    Column("revoke_time", Moment),
)

agents = Table(
    "agents",
    metadata,
    Column("agent_id", Name, primary_key=True),
    Column("boot_id", Name, nullable=False),  # the latest; its figures stand in agent_boots
    Column("job_id", Name, nullable=False),
    Column("facts", Text, nullable=False),  # JSON
    Column("session_id", Text, nullable=False),
    Column("replica", Text, nullable=False),
    Column("notice", Text),  # JSON
    Column("latest_probe", Text),  # JSON
    Column("failed_probe", Text),  # JSON
    Column("open_unix_s", Double, nullable=False),  # the latest session, by the store's own clock
    Index("agents_by_job", "job_id", "agent_id"),
)

agent_boots = Table(  # marks of old boots stay for long, so that nothing of them is taken twice
    "agent_boots",
    metadata,
    Column("boot_number", RowNumber, Identity(), primary_key=True),
    Column("agent_id", Name, nullable=False),
    Column("boot_id", Name, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    Column("dropped_sample_count", BigInteger, nullable=False),
    Column("last_seen_unix_ms", BigInteger),
    Column("clock_skew_s", Double, nullable=False),
    Column("latest_sample", LargeBinary),
    Column("latest_step", LargeBinary),
    Column("faults", LargeBinary),
    UniqueConstraint("agent_id", "boot_id", name="agent_boots_by_name"),
)

batches = Table(
    "batches",
    metadata,
    Column("row_number", RowNumber, Identity(), primary_key=True),
    Column("boot_number", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("receive_unix_ms", BigInteger, nullable=False),
    Column("first_unix_ms", BigInteger, nullable=False),
    Column("last_unix_ms", BigInteger, nullable=False),
    Column("clock_skew_s", Double, nullable=False),
    Column("document", LargeBinary, nullable=False),
    UniqueConstraint("boot_number", "sequence", name="batches_by_sequence"),
    Index("batches_by_receive_time", "receive_unix_ms"),
    sqlite_autoincrement=True,  # a pruned row's number is never given again
)

rollups = Table(  # by time first: what is written at once lies side by side
    "rollups",
    metadata,
    Column("resolution_s", Integer, primary_key=True),
    Column("start_unix_s", BigInteger, primary_key=True),
    Column("agent_id", Name, primary_key=True),
    Column("part_number", BigInteger, primary_key=True),
    Column("document", LargeBinary, nullable=False),
    Index("rollups_by_agent", "agent_id", "resolution_s", "start_unix_s"),
    sqlite_with_rowid=False,  # the key is the row: no second copy of it
)

commands = Table(
    "commands",
    metadata,
    Column("row_number", RowNumber, Identity(), primary_key=True),
    Column("command_id", Name, nullable=False),
    Column("agent_id", Name, nullable=False),
    Column("document", LargeBinary, nullable=False),
)
