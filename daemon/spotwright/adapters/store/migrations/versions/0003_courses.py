"""Where the current plan of each job took over, what has come of it since, and its steps."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Go from 0002 to 0003."""
    op.add_column("jobs", sa.Column("course", sa.Text()))
    name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "job_steps",
        sa.Column("job_id", name, primary_key=True),
        sa.Column("agent_id", name, primary_key=True),
        sa.Column("step_count", sa.BigInteger(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("samples", sa.Double()),
        sa.Column("loss", sa.Double()),
    )
