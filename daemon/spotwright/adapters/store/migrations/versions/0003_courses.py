"""Where the current plan of each job took over, and what has come of the job since."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Go from 0002 to 0003."""
    op.add_column("jobs", sa.Column("course", sa.Text()))
