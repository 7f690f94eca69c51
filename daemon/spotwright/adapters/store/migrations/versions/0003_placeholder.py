"""Nothing: another branch fills this in."""

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Go from 0002 to 0003."""
