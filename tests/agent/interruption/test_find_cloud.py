"""The cloud is found by asking, first the one that the firmware names."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from spotwright_agent.interruption.detect import asking_order, find_cloud
from spotwright_agent.interruption.source import CloudSilentError, MetadataError
from tests.fakes.metadata_server import metadata_server
from tests.ports import stable_port

NOWHERE = Path("/nonexistent")


def firmware(folder: Path, names: Mapping[str, str]) -> Path:
    for name, text in names.items():
        (folder / name).write_text(f"{text}\n")
    return folder


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_cloud_that_answers_is_found(cloud: str) -> None:
    with metadata_server(cloud) as server:
        found = find_cloud("auto", base_url=server.url, dmi=NOWHERE)

        assert found is not None
        assert found.name == cloud
        assert found.facts().instance_id
        found.close()


@pytest.mark.parametrize(
    ("names", "first"),
    [
        ({"sys_vendor": "Amazon EC2", "product_name": "g5.12xlarge"}, "aws"),
        ({"sys_vendor": "Xen", "product_name": "HVM domU", "bios_version": "4.11.amazon"}, "aws"),
        ({"sys_vendor": "Google", "product_name": "Google Compute Engine"}, "gcp"),
        ({"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}, "azure"),
    ],
)
def test_firmware_says_whom_to_ask_first(
    tmp_path: Path, names: Mapping[str, str], first: str
) -> None:
    order = asking_order(firmware(tmp_path, names))

    assert order[0] == first
    assert sorted(order) == ["aws", "azure", "gcp"]


def test_firmware_with_other_names_or_none_leaves_all_to_ask(tmp_path: Path) -> None:
    (tmp_path / "sys_vendor").write_bytes(b"Dell Inc.\xff\n")

    assert sorted(asking_order(tmp_path)) == sorted(asking_order(NOWHERE))


def test_firmware_that_names_the_wrong_cloud_does_not_hide_the_right_one(tmp_path: Path) -> None:
    folder = firmware(tmp_path, {"sys_vendor": "Microsoft Corporation"})
    with metadata_server("gcp") as server:
        found = find_cloud("auto", base_url=server.url, dmi=folder)

    assert found is not None
    assert found.name == "gcp"
    found.close()


def test_nobody_is_found_where_nobody_listens() -> None:
    assert find_cloud("auto", base_url=f"http://127.0.0.1:{stable_port()}", dmi=NOWHERE) is None


AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"  # as Azure documents it


@pytest.mark.parametrize(
    ("names", "cloud"),
    [
        ({"sys_vendor": "Amazon EC2"}, "aws"),
        ({"product_name": "Google Compute Engine"}, "gcp"),
        ({"sys_vendor": "Microsoft Corporation", "chassis_asset_tag": AZURE_TAG}, "azure"),
    ],
)
def test_cloud_that_the_firmware_names_and_that_is_silent_is_a_problem(
    tmp_path: Path, names: Mapping[str, str], cloud: str
) -> None:
    with metadata_server(cloud) as server:
        server.status = 403  # as where the account has switched it off
        with pytest.raises(CloudSilentError, match=f"^{cloud} is named by the firmware, .*403"):
            find_cloud("auto", base_url=server.url, dmi=firmware(tmp_path, names))


def test_hyper_v_outside_azure_is_not_missed_in_azure(tmp_path: Path) -> None:
    folder = firmware(tmp_path, {"sys_vendor": "Microsoft Corporation", "chassis_asset_tag": "7"})

    assert find_cloud("auto", base_url=f"http://127.0.0.1:{stable_port()}", dmi=folder) is None


def test_spot_host_without_a_cloud_is_a_problem_whatever_the_firmware_says() -> None:
    url = f"http://127.0.0.1:{stable_port()}"

    with pytest.raises(CloudSilentError, match=r"this is a spot host, but .*refused"):
        find_cloud("auto", base_url=url, dmi=NOWHERE, is_spot=True)
    assert find_cloud("none", is_spot=True) is None


def test_silent_server_is_given_up_soon() -> None:
    with metadata_server("azure") as server:
        server.delay_s = 5
        start_s = time.monotonic()

        assert find_cloud("auto", base_url=server.url, dmi=NOWHERE) is None
        assert time.monotonic() - start_s < 4  # 1.8 s, on a machine that others use too


@pytest.mark.parametrize("garbage", [b"<html>Welcome to the hotel</html>", b"{}", b""])
@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_server_that_answers_anything_is_no_cloud(cloud: str, garbage: bytes) -> None:
    with metadata_server(cloud) as server:
        server.garbage = garbage

        assert find_cloud("auto", base_url=server.url, dmi=NOWHERE) is None


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_cloud_that_is_named_is_taken_without_asking(cloud: str) -> None:
    found = find_cloud(cloud, base_url=f"http://127.0.0.1:{stable_port()}", dmi=NOWHERE)

    assert found is not None
    assert found.name == cloud


def test_none_asks_nobody() -> None:
    with metadata_server("aws") as server:
        assert find_cloud("none", base_url=server.url) is None
        assert server.connection_count == 0


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1", "127.0.0.1:80", "http://", "http://h:99999", "http://[::1", "x"]
)
@pytest.mark.parametrize("choice", ["auto", "aws"])
def test_url_that_is_none_is_an_error(choice: str, url: str) -> None:
    with pytest.raises(MetadataError):
        find_cloud(choice, base_url=url, dmi=NOWHERE)
