"""Why a probe gives no result."""


class ProbeError(Exception):
    """A probe cannot be made, or broke off; the text says why."""
