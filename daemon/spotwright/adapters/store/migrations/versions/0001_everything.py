"""Everything that the first version keeps."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Go from nothing to 0001."""
    _create_plans_and_jobs()
    _create_access()
    _create_agents()
    _create_telemetry()


def _create_plans_and_jobs() -> None:
    op.create_table(
        "plans",
        sa.Column("plan_id", NAME, nullable=False),
        sa.Column("job_name", NAME, nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("cost_usd", sa.Double(), nullable=False),
        sa.Column("duration_s", sa.Double(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("job_text", sa.Text(), nullable=False),
        sa.Column("job_path", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("plan_id"),
    )
    op.create_index("plans_by_time", "plans", ["create_time", "plan_id"])
    op.create_table(
        "jobs",
        sa.Column("job_id", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("plan_id", NAME, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.Column("update_time", sa.BigInteger(), nullable=False),
        sa.Column("start_time", sa.BigInteger()),
        sa.Column("end_time", sa.BigInteger()),
        sa.Column("progress_samples", sa.Double()),
        sa.Column("progress_steps", sa.Double()),
        sa.Column("progress_loss", sa.Double()),
        sa.Column("progress_fraction", sa.Double()),
        sa.Column("controller", sa.Text(), nullable=False),
        sa.Column("last_event_sequence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_index("jobs_by_time", "jobs", ["create_time", "job_id"])
    op.create_table(
        "events",
        sa.Column("job_id", NAME, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "sequence"),
    )
    op.create_table(
        "requests",
        sa.Column("kind", NAME, nullable=False),
        sa.Column("request_id", NAME, nullable=False),
        sa.Column("target_id", sa.Text(), nullable=False),
        sa.Column("claim_unix_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "request_id"),
    )
    op.create_index("requests_by_time", "requests", ["claim_unix_s"])


def _create_access() -> None:
    op.create_table(
        "leases",
        sa.Column("name", NAME, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("expire_unix_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "tokens",
        sa.Column("token_id", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.Column("expire_time", sa.BigInteger()),
        sa.Column("revoke_time", sa.BigInteger()),
        sa.PrimaryKeyConstraint("token_id"),
    )


def _create_agents() -> None:
    op.create_table(
        "agents",
        sa.Column("agent_id", NAME, nullable=False),
        sa.Column("boot_id", NAME, nullable=False),
        sa.Column("job_id", NAME, nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("replica", sa.Text(), nullable=False),
        sa.Column("notice", sa.Text()),
        sa.Column("open_unix_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id"),
    )
    op.create_index("agents_by_job", "agents", ["job_id", "agent_id"])
    op.create_table(
        "agent_boots",
        sa.Column("boot_number", ROW_NUMBER, sa.Identity(), nullable=False),
        sa.Column("agent_id", NAME, nullable=False),
        sa.Column("boot_id", NAME, nullable=False),
        sa.Column("last_sequence", sa.BigInteger(), nullable=False),
        sa.Column("dropped_sample_count", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_unix_ms", sa.BigInteger()),
        sa.Column("clock_skew_s", sa.Double(), nullable=False),
        sa.Column("latest_sample", sa.LargeBinary()),
        sa.Column("latest_step", sa.LargeBinary()),
        sa.Column("faults", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("boot_number"),
        sa.UniqueConstraint("agent_id", "boot_id", name="agent_boots_by_name"),
    )
    op.create_table(
        "commands",
        sa.Column("row_number", ROW_NUMBER, sa.Identity(), nullable=False),
        sa.Column("command_id", NAME, nullable=False),
        sa.Column("agent_id", NAME, nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("row_number"),
    )


def _create_telemetry() -> None:
    op.create_table(
        "batches",
        sa.Column("row_number", ROW_NUMBER, sa.Identity(), nullable=False),
        sa.Column("boot_number", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("receive_unix_ms", sa.BigInteger(), nullable=False),
        sa.Column("first_unix_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_unix_ms", sa.BigInteger(), nullable=False),
        sa.Column("clock_skew_s", sa.Double(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("row_number"),
        sa.UniqueConstraint("boot_number", "sequence", name="batches_by_sequence"),
        sqlite_autoincrement=True,
    )
    op.create_index("batches_by_receive_time", "batches", ["receive_unix_ms"])
    op.create_table(
        "rollups",
        sa.Column("resolution_s", sa.Integer(), nullable=False),
        sa.Column("start_unix_s", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", NAME, nullable=False),
        sa.Column("part_number", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("resolution_s", "start_unix_s", "agent_id", "part_number"),
        sqlite_with_rowid=False,
    )
    op.create_index("rollups_by_agent", "rollups", ["agent_id", "resolution_s", "start_unix_s"])
