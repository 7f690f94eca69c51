"""Who gets into a daemon with TLS, with certificates and tokens made by the commands for them."""

import asyncio
import json
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.issue_files import issue
from spotwright.v1 import telemetry_pb2 as v1
from spotwright.v1.telemetry_pb2_grpc import TelemetryServiceStub
from tests.cli.command import spotwright, spotwright_here
from tests.cli.small_job import small_job
from tests.daemon_process import DaemonProcess, running_daemon
from tests.e2e.agent_client import OWN_CONNECTION
from tests.e2e.daemon_health import OF_GRPC_ITSELF

LIST_PLANS = "/spotwright.v1.PlannerService/ListPlans"
CREATE_PLAN = "/spotwright.v1.PlannerService/CreatePlan"
_SOLVE_S = re.compile(r'("solve_s": )[\d.e-]+')


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A daemon with TLS, its folder of certificates, and a token of each role."""

    daemon: DaemonProcess
    tls: Path
    tokens: dict[str, str]

    def channel(self, file: str | None, *, folder: Path | None = None) -> grpc.Channel:
        """Return a channel that shows a certificate of a folder, or none."""
        credentials = grpc.ssl_channel_credentials(*self._files(file, folder or self.tls))
        return grpc.secure_channel(self.daemon.address, credentials, options=OWN_CONNECTION)

    def _files(self, file: str | None, folder: Path) -> Sequence[bytes]:
        own = [(folder / f"{file}.{end}").read_bytes() for end in ("key", "crt")] if file else []
        return [(self.tls / "ca.crt").read_bytes(), *own]

    def code_of(
        self,
        method: str,
        *,
        file: str | None = "client",
        token: str = "",
        folder: Path | None = None,
    ) -> str:
        """Call a method with an empty request and return the status."""
        metadata = [("authorization", f"Bearer {token}")] if token else []
        with self.channel(file, folder=folder) as channel:
            try:
                channel.unary_unary(method)(b"", metadata=metadata, timeout=20)
            except grpc.RpcError as error:
                return str(error.code().name)
        return "OK"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    tls = folder / "tls"
    _done("certs", "init", "--dir", str(tls))
    for name in ("gpu-7", "gpu-8"):
        _done("certs", "issue", "agent", name, "--dir", str(tls))
    store = f"sqlite:///{folder / 'daemon.db'}"
    tokens = {
        role: _done("tokens", "create", f"a-{role}", "--role", role, "--store", store).strip()
        for role in ("viewer", "planner", "admin")
    }
    with running_daemon(folder, "--tls-dir", str(tls)) as daemon:
        yield Guarded(daemon=daemon, tls=tls, tokens=tokens)


def _done(*arguments: str) -> str:
    done = spotwright_here(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_plan_by_token_is_the_plan_made_in_process(guarded: Guarded, tmp_path: Path) -> None:
    job = small_job(tmp_path)
    here = spotwright("plan", job, "--json")

    there = spotwright(
        "plan", job, "--json", "--daemon", guarded.daemon.address, "--tls-dir", guarded.tls,
        environment={"SPOTWRIGHT_TOKEN": guarded.tokens["planner"]},
    )  # fmt: skip

    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    assert _SOLVE_S.sub(r"\1", there.stdout) == _SOLVE_S.sub(r"\1", here.stdout)


@pytest.mark.parametrize(
    ("method", "file", "role", "expected"),
    [
        (LIST_PLANS, "client", "viewer", "OK"),
        (LIST_PLANS, "client", None, "UNAUTHENTICATED"),
        (LIST_PLANS, "client", "wrong", "UNAUTHENTICATED"),
        (CREATE_PLAN, "client", "viewer", "PERMISSION_DENIED"),
        (CREATE_PLAN, "client", "planner", "INVALID_ARGUMENT"),
        (CREATE_PLAN, "agents/gpu-7", None, "PERMISSION_DENIED"),
        (CREATE_PLAN, "agents/gpu-7", "admin", "PERMISSION_DENIED"),
        (LIST_PLANS, None, "admin", "UNAVAILABLE"),
    ],
)
def test_each_caller_is_let_in_or_told_why_not(
    guarded: Guarded, method: str, file: str | None, role: str | None, expected: str
) -> None:
    wrong = guarded.tokens["viewer"][:-4] + "AAAA"
    token = "" if role is None else guarded.tokens.get(role, wrong)

    assert guarded.code_of(method, file=file, token=token) == expected


def test_a_certificate_of_another_authority_is_refused(guarded: Guarded, tmp_path: Path) -> None:
    _done("certs", "init", "--dir", str(tmp_path / "other"))

    token = guarded.tokens["admin"]
    assert guarded.code_of(LIST_PLANS, token=token, folder=tmp_path / "other") == "UNAVAILABLE"


def test_an_expired_certificate_is_refused(guarded: Guarded) -> None:
    request = CertificateRequest(kind=CertificateKind.AGENT, name="late", days=1)
    issue(guarded.tls, [request], now=datetime.now(UTC) - timedelta(days=1, seconds=1))

    assert guarded.code_of(LIST_PLANS, file="agents/late") == "UNAVAILABLE"


def test_plaintext_is_refused(guarded: Guarded) -> None:
    with (
        grpc.insecure_channel(guarded.daemon.address, options=OWN_CONNECTION) as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        channel.unary_unary(LIST_PLANS)(b"", timeout=20)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("name", "expected"),
    [("gpu-7", grpc.StatusCode.OK), ("gpu-8", grpc.StatusCode.PERMISSION_DENIED)],
)
def test_an_agent_opens_sessions_under_its_own_name_only(
    guarded: Guarded, name: str, expected: grpc.StatusCode
) -> None:
    hello = v1.SessionRequest(hello=v1.AgentFacts(agent_id=name, boot_id="b"))
    with guarded.channel("agents/gpu-7") as channel:
        call = TelemetryServiceStub(channel).Session(iter([hello]), timeout=20)
        try:
            [welcome] = call
            assert welcome.HasField("welcome")
        except grpc.RpcError:
            pass
        assert call.code() is expected


def _reflected(guarded: Guarded, token: str) -> list[str]:
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with guarded.channel("client") as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        [answer] = stub.ServerReflectionInfo(iter([request]), metadata=metadata, timeout=20)
    return [service.name for service in answer.list_services_response.service]


def test_reflection_is_for_admins(guarded: Guarded) -> None:
    assert "spotwright.v1.PlannerService" in _reflected(guarded, guarded.tokens["admin"])
    for token, code in (("", "UNAUTHENTICATED"), (guarded.tokens["planner"], "PERMISSION_DENIED")):
        with pytest.raises(grpc.RpcError) as refused:
            _reflected(guarded, token)
        assert refused.value.code().name == code


def _serial_shown(guarded: Guarded) -> int:
    """Return the serial number of the certificate that a new connection is shown."""
    context = ssl.create_default_context(cafile=str(guarded.tls / "ca.crt"))
    context.load_cert_chain(guarded.tls / "client.crt", guarded.tls / "client.key")
    context.set_alpn_protocols(["h2"])
    host, _, port = guarded.daemon.address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        shown = secure.getpeercert()
    assert shown is not None
    return int(str(shown["serialNumber"]), 16)


def test_a_stream_goes_on_while_the_certificate_is_renewed(guarded: Guarded) -> None:
    before = _serial_shown(guarded)

    async def scene() -> None:
        credentials = grpc.ssl_channel_credentials(*guarded._files("agents/gpu-8", guarded.tls))
        address = guarded.daemon.address
        async with grpc.aio.secure_channel(address, credentials, options=OWN_CONNECTION) as channel:
            call = TelemetryServiceStub(channel).Session(timeout=60)
            await call.write(v1.SessionRequest(hello=v1.AgentFacts(agent_id="gpu-8", boot_id="b")))
            assert (await call.read()).HasField("welcome")
            await asyncio.to_thread(_done, "certs", "renew", "server", "--dir", str(guarded.tls))
            assert await asyncio.to_thread(_serial_shown, guarded) != before
            now_ms = int(datetime.now(UTC).timestamp() * 1000)
            batch = v1.Batch(sequence=1, send_time_unix_ms=now_ms)
            await call.write(v1.SessionRequest(batch=batch))
            assert (await call.read()).ack.sequence == 1
            await call.done_writing()
            assert await call.code() is grpc.StatusCode.OK

    asyncio.run(scene())
    assert guarded.daemon.events("new certificates are in use")


def test_no_secret_is_in_the_log(guarded: Guarded) -> None:
    wrong = guarded.tokens["admin"][:-4] + "AAAA"
    for token in (*guarded.tokens.values(), wrong):
        for method in (LIST_PLANS, CREATE_PLAN):
            guarded.code_of(method, file="client", token=token)
    assert guarded.daemon.events("a caller is not known")

    log = "\n".join(guarded.daemon.log)
    secrets = [token.split("_", 2)[2] for token in (*guarded.tokens.values(), wrong)]
    for key in guarded.tls.rglob("*.key"):
        secrets += [
            line for line in key.read_text(encoding="ascii").splitlines() if "-" not in line
        ]

    assert len(secrets) > 10
    assert [secret for secret in secrets if secret in log] == []
    ours = [line for line in guarded.daemon.log if not OF_GRPC_ITSELF.match(line)]
    assert all(isinstance(json.loads(line), dict) for line in ours)
