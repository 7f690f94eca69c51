"""Who calls, and may they: by certificate, token and role (docs/decisions/0006-access.md).

A secret stands in no log line and in no status; of a token that is refused only its id does, and
only once the store knows it.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import grpc

from spotwright.adapters.grpc.access.callers import LOOPBACK
from spotwright.adapters.grpc.access.method_roles import OPEN_METHODS, is_allowed
from spotwright.adapters.grpc.access.rate_limit import CallKind, RateLimiter, kind_of
from spotwright.adapters.grpc.access.token_cache import TokenCache
from spotwright.adapters.grpc.errors import StatusError, make_status
from spotwright.domain.access import AccessRole, Principal, TokenRecord
from spotwright.domain.errors import NotAllowedError
from spotwright.usecases.store_ports import TokenStore
from spotwright.usecases.tokens import PresentedToken, read_token

_log = logging.getLogger(__name__)
_IDENTITY = "spiffe://spotwright/"
_SCHEME = "bearer "
_CREATE = "make one with `spotwright tokens create NAME --role ROLE`"


class PeerCertificate(NamedTuple):
    """Whom the certificate of a connection is for."""

    kind: str
    name: str


class LoopbackGuard:
    """Lets everybody on this host do everything, as fast as the limits allow by connection."""

    def __init__(self, limiter: RateLimiter) -> None:
        self._limiter = limiter

    async def admit(self, method: str, context: grpc.aio.ServicerContext) -> Principal:
        """Return the one who is on loopback."""
        self._limiter.take(context.peer(), kind_of(method))
        return LOOPBACK


class CallGuard:
    """Knows agents by their certificates, and people and machines by their tokens."""

    def __init__(
        self,
        tokens: TokenStore,
        *,
        limiter: RateLimiter,
        clock: Callable[[], datetime],
        clock_s: Callable[[], float],
    ) -> None:
        self._tokens = TokenCache(tokens, clock_s=clock_s)
        self._limiter, self._clock = limiter, clock

    async def admit(self, method: str, context: grpc.aio.ServicerContext) -> Principal:
        """Return who calls.

        Raises:
            StatusError: UNAUTHENTICATED, nobody knows who calls.
            NotAllowedError: the caller's role does not allow this.
            BusyError: the caller calls too often.
        """
        peer = peer_certificate(context)
        if peer.kind == "agent":
            principal = Principal(name=peer.name, role=AccessRole.AGENT)
        elif peer.kind == "client" and method in OPEN_METHODS:
            principal = Principal(name=peer.name, role=AccessRole.VIEWER)
        elif peer.kind == "client":
            principal = await self._holder(peer, context)
        else:
            raise _unknown(f"a certificate of kind {peer.kind!r} calls nobody", peer)
        self._limiter.take(principal, kind_of(method))
        if not is_allowed(principal, method):
            raise NotAllowedError(_too_low(principal, method))
        return principal

    async def _holder(self, peer: PeerCertificate, context: grpc.aio.ServicerContext) -> Principal:
        """Return whose token this is."""
        token = _presented(peer, context)
        origin = (peer, context.peer().rpartition(":")[0])
        if not self._tokens.is_known(token.token_id):  # each of these costs a query
            self._limiter.check(origin, CallKind.REFUSAL)
        record = await self._tokens.record(token.token_id)
        if record is None or not token.fits(record):
            self._limiter.take(origin, CallKind.REFUSAL)
            raise _unknown(f"no such token; {_CREATE}", peer, record)
        if not record.is_valid(self._clock()):
            raise _unknown(_ended(record), peer, record)
        return Principal(name=record.name, role=record.role)


def peer_certificate(context: grpc.aio.ServicerContext) -> PeerCertificate:
    """Return whom the certificate of a call's connection is for.

    gRPC gives the URI only where it is the certificate's one URI and well-formed.
    """
    [uri] = context.auth_context().get("peer_spiffe_id") or [b""]
    kind, _, name = uri.decode().removeprefix(_IDENTITY).partition("/")
    if not (uri.decode().startswith(_IDENTITY) and kind and name):
        raise _unknown(
            "the certificate does not say whom it is for; use one made by `spotwright certs issue`",
            PeerCertificate("unknown", ""),
        )
    return PeerCertificate(kind, name)


def _presented(peer: PeerCertificate, context: grpc.aio.ServicerContext) -> PresentedToken:
    sent = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
    if not sent:
        where = "in SPOTWRIGHT_TOKEN or as `authorization: Bearer sw_...`"
        raise _unknown(f"a token is needed, {where}; {_CREATE}", peer)
    [text] = sent if len(sent) == 1 else [""]
    token = None
    if text[: len(_SCHEME)].lower() == _SCHEME:
        token = read_token(text[len(_SCHEME) :].strip())
    if token is None:
        raise _unknown(
            "the authorization that was sent is not one token: `authorization: Bearer sw_...`", peer
        )
    return token


def _unknown(problem: str, peer: PeerCertificate, record: TokenRecord | None = None) -> StatusError:
    _log.info(
        "a caller is not known",
        extra={
            "problem": problem,
            "certificate": f"{peer.kind}/{peer.name}",
            "token_id": record.token_id if record else None,
        },
    )
    return StatusError(
        make_status(grpc.StatusCode.UNAUTHENTICATED, problem, reason=NotAllowedError.reason)
    )


def _ended(record: TokenRecord) -> str:
    if record.revoke_time is not None:
        return f"the token of {record.name} was revoked on {record.revoke_time:%Y-%m-%d}; {_CREATE}"
    return f"the token of {record.name} ended on {record.expire_time:%Y-%m-%d}; {_CREATE}"


def _too_low(principal: Principal, method: str) -> str:
    what = method.rpartition("/")[2]
    if principal.role is AccessRole.AGENT:
        return f"agent {principal.name} may send telemetry and progress, not call {what}"
    return (
        f"{principal.name} has role {principal.role}, which may not call {what}; ask for a token "
        "of another role, or for an agent's certificate where agents call it"
    )
