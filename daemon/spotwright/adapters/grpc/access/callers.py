"""Who makes the call that is being answered."""

from contextvars import ContextVar

from spotwright.domain.access import AccessRole, Principal

# Whoever reaches a daemon that listens without TLS on loopback already has an account there.
LOOPBACK = Principal(name="loopback", role=AccessRole.ADMIN)

current_principal: ContextVar[Principal] = ContextVar("current_principal", default=LOOPBACK)
