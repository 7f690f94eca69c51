import shutil
from pathlib import Path

import pytest

from spotwright.client import AioClient
from spotwright.domain.access import AccessRole
from spotwright.domain.errors import DaemonUnavailableError, NotAllowedError
from tests.adapters.grpc.access.guarded_server import World, make_folder, play


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("tls"))


def own_folder(folder: Path, own: Path, *, pair: str | None) -> Path:
    """Return what a caller has: the authority, and a certificate or none."""
    shutil.copy(folder / "ca.crt", own)
    for end in ("crt", "key") if pair else ():
        shutil.copy(folder / f"{pair}.{end}", own / f"client.{end}")
    return own


def test_a_certificate_and_a_token_are_who_calls(folder: Path, tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        tls_dir, address = own_folder(folder, tmp_path, pair="client"), f"127.0.0.1:{world.port}"
        token = world.token(AccessRole.VIEWER)
        async with AioClient(address, tls_dir=tls_dir, token=token) as client:
            assert await client.list_plans() == ([], "")
        for wrong in (None, "spotwright-wrong"):
            async with AioClient(address, tls_dir=tls_dir, token=wrong) as client:
                with pytest.raises(NotAllowedError):
                    await client.list_plans()

    play(folder, scene)


def test_without_a_certificate_the_way_there_is_closed(folder: Path, tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        tls_dir, token = own_folder(folder, tmp_path, pair=None), world.token(AccessRole.ADMIN)
        async with AioClient(f"127.0.0.1:{world.port}", tls_dir=tls_dir, token=token) as client:
            with pytest.raises(DaemonUnavailableError, match="do --tls-dir and its certificates"):
                await client.list_plans()

    assert play(folder, scene).observed == []


def test_a_daemon_of_another_authority_is_not_talked_to(folder: Path, tmp_path: Path) -> None:
    other = make_folder(tmp_path / "other")

    async def scene(world: World) -> None:
        token = world.token(AccessRole.ADMIN)
        async with AioClient(f"127.0.0.1:{world.port}", tls_dir=other, token=token) as client:
            with pytest.raises(DaemonUnavailableError):
                await client.list_plans()

    assert play(folder, scene).observed == []
