"""Certificates that our authority signed and that are nobody's."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spotwright.domain.access import AccessRole
from tests.adapters.grpc.access.guarded_server import (
    HEALTH,
    SESSION,
    World,
    code_of,
    make_folder,
    play,
)

LIST_JOBS = "/spotwright.v1.JobService/ListJobs"
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    "uris",
    [
        [],
        ["spiffe://spotwright/server/daemon"],
        ["spiffe://spotwright/admin/anna"],
        ["spiffe://spotwright/agent"],
        ["spiffe://elsewhere/agent/gpu-7"],
        ["https://spotwright/agent/gpu-7"],
        ["spiffe://spotwright/agent/gpu-7", "spiffe://spotwright/agent/gpu-8"],
    ],
)
def test_a_certificate_of_ours_that_names_neither_agent_nor_client_is_unauthenticated(
    tmp_path: Path, uris: list[str]
) -> None:
    folder = make_folder(tmp_path / "tls")
    write_client(folder, uris)

    async def scene(world: World) -> None:
        async with world.channel("odd") as channel:
            for method in (SESSION, LIST_JOBS, HEALTH):
                found = await code_of(channel, method, token=world.token(AccessRole.ADMIN))
                assert found is UNAUTHENTICATED

    play(folder, scene)


def write_client(folder: Path, uris: list[str]) -> None:
    """Sign a certificate of an agent's common name and DNS name, with URIs that ours never have."""
    ca = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    ca_key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    names = [x509.DNSName("gpu-7"), *map(x509.UniformResourceIdentifier, uris)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpu-7")]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(cast(ec.EllipticCurvePrivateKey, ca_key), hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "odd.crt").write_bytes(certificate.public_bytes(pem))
    (folder / "odd.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
