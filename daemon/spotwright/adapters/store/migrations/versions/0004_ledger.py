"""Who was seen working for jobs at which price, and how far these had come."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Go from 0003 to 0004."""
    op.create_table(
        "ledger",
        sa.Column("job_id", NAME, nullable=False),
        sa.Column("agent_id", NAME, nullable=False),
        sa.Column("start_time", sa.BigInteger(), nullable=False),
        sa.Column("end_time", sa.BigInteger(), nullable=False),
        sa.Column("instance_id", sa.Text(), nullable=False),
        sa.Column("instance_type", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("market", sa.Text(), nullable=False),
        sa.Column("price_usd_per_hour", sa.Double()),
        sa.PrimaryKeyConstraint("job_id", "agent_id", "start_time"),
    )
    op.create_table(
        "progress_marks",
        sa.Column("job_id", NAME, nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("fraction", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "time"),
    )
