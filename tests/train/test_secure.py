"""Who may connect: mutual TLS with the project's certificates, plaintext on loopback only."""

import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spotwright.adapters.tls.authority import CertificateKind, CertificateRequest
from spotwright.adapters.tls.issue_files import init_folder, issue
from spotwright.domain.address import Address
from spotwright.domain.errors import BadInputError, PeerRefusedError
from spotwright.train import ParameterServer, ServerSettings, Worker
from tests.train.small_training import backward, build_model, sgd, small_job


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    init_folder(folder, hosts=(), now=datetime.now(UTC))
    return folder


def test_a_worker_with_a_certificate_of_the_authority_trains(tls: Path) -> None:
    with small_job(tls_dir=tls, count=2, steps=5) as job:
        model = build_model()
        with job.worker("w", model, tls_dir=tls) as worker:
            while not worker.is_over:
                worker.exchange(loss=backward(model, worker.sequence), batch=8)

    assert [update.version for update in job.updates[0]] == [1, 2, 3, 4, 5]


def test_a_host_trains_with_the_certificate_of_its_agent(tls: Path, tmp_path: Path) -> None:
    request = CertificateRequest(kind=CertificateKind.AGENT, name="i-0abc", days=1)
    issue(tls, [request], now=datetime.now(UTC))
    (tmp_path / "agents").mkdir()
    for name in ("ca.crt", "agents/i-0abc.crt", "agents/i-0abc.key"):
        (tmp_path / name).write_bytes((tls / name).read_bytes())

    with small_job(tls_dir=tls) as job:
        model = build_model()
        with job.worker("w", model, tls_dir=tmp_path) as worker:
            assert worker.exchange(loss=backward(model, 1), batch=8).applied


def test_a_worker_of_another_authority_is_refused_by_both_ends(tls: Path, tmp_path: Path) -> None:
    init_folder(tmp_path, hosts=(), now=datetime.now(UTC))
    with small_job(tls_dir=tls) as job:
        stranger = job.worker("w", tls_dir=tmp_path)
        with pytest.raises(PeerRefusedError, match="is refused: "):
            stranger.join()
        (tmp_path / "ca.crt").write_bytes((tls / "ca.crt").read_bytes())  # it trusts ours now
        stranger = job.worker("w", tls_dir=tmp_path)
        with pytest.raises(PeerRefusedError, match="the peer refuses this host"):
            stranger.join()


def test_a_certificate_of_a_server_does_not_make_a_worker(tls: Path, tmp_path: Path) -> None:
    for name in ("ca.crt", "server.crt", "server.key"):
        copy = tmp_path / name.replace("server", "client")
        copy.write_bytes((tls / name).read_bytes())
    with small_job(tls_dir=tls) as job:
        impostor = job.worker("w", tls_dir=tmp_path, patience_s=0.5)

        with pytest.raises(PeerRefusedError):
            impostor.join()


def test_nobody_without_a_certificate_gets_a_byte(tls: Path) -> None:
    with small_job(tls_dir=tls) as job:
        address = job.servers[0].address
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(tls / "ca.crt")
        with (
            socket.create_connection((address.host, address.port)) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
            pytest.raises(ssl.SSLError),
        ):
            secured.recv(1)
        worker = job.worker("w", patience_s=0.5)
        with pytest.raises(PeerRefusedError, match="peers with a certificate only: give --tls-dir"):
            worker.join()


def test_gradients_do_not_leave_this_machine_in_the_clear() -> None:
    model = build_model()
    open_to_all = ServerSettings(listen=Address("0.0.0.0", 0))

    with pytest.raises(BadInputError, match="--tls-dir"):
        ParameterServer(model, sgd(model), settings=open_to_all).start()
    with pytest.raises(BadInputError, match="--tls-dir"):
        Worker(build_model(), ["192.0.2.1:7600"]).join()


def test_a_missing_certificate_is_named(tmp_path: Path) -> None:
    worker = Worker(build_model(), ["127.0.0.1:1"], tls_dir=tmp_path)

    with pytest.raises(BadInputError, match=r"client\.crt is missing; `spotwright certs`"):
        worker.join()
