"""The latest measurement of the network by each agent, and the latest that failed."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Go from 0001 to 0002."""
    op.add_column("agents", sa.Column("latest_probe", sa.Text()))
    op.add_column("agents", sa.Column("failed_probe", sa.Text()))
