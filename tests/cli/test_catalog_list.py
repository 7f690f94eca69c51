"""`catalog list`: each filter against a filter in plain Python over everything there is."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import printed_json, spotwright

EXAMPLE = Path(__file__).parents[2] / "examples" / "resnet50.yaml"
Record = dict[str, Any]


@cache
def every_offer() -> list[Record]:
    gpu = printed_json("catalog", "list", "--retired")["offers"]
    cpu = printed_json("catalog", "list", "--retired", "--cpu")["offers"]
    return gpu + cpu


def _order(offer: Record) -> tuple[float, str, str, str]:
    place = offer["instance_type"], offer["zone"], offer["market"]
    return offer["price_usd_per_hour"], *place


def current_gpu(offer: Record) -> bool:
    return offer["gpu_count"] > 0 and not offer["retired"]


def test_t4_offers_in_virginia_are_the_g4dn_family() -> None:
    found = printed_json("catalog", "list", "--gpu", "T4", "--region", "us-east-1")["offers"]

    assert {offer["instance_type"].split(".")[0] for offer in found} == {"g4dn"}
    assert {offer["region"] for offer in found} == {"us-east-1"}
    on_demand = {o["price_usd_per_hour"] for o in found
                 if (o["instance_type"], o["market"]) == ("g4dn.xlarge", "on-demand")}  # fmt: skip
    assert on_demand == {0.526}  # AWS's list price
    assert {o["gpu_memory_gib"] for o in found} == {16.0}
    assert {o["quota_class"] for o in found} == {"g-vt"}


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ([], current_gpu),
        (["--retired"], lambda o: o["gpu_count"] > 0),
        (["--cpu"], lambda o: o["gpu_count"] == 0 and not o["retired"]),
        (["--gpu", "T4"], lambda o: current_gpu(o) and o["gpu_name"] == "T4"),
        (["--gpu", "t4", "--gpu", "L4"],
         lambda o: current_gpu(o) and o["gpu_name"] in ("T4", "L4")),
        (["--type", "g5.xlarge"], lambda o: o["instance_type"] == "g5.xlarge"),
        (["--type", "p2.xlarge"], lambda o: o["instance_type"] == "p2.xlarge"),
        (["--type", "m5.xlarge"], lambda o: o["instance_type"] == "m5.xlarge"),
        (["--region", "eu-west-1"], lambda o: current_gpu(o) and o["region"] == "eu-west-1"),
        (["--zone", "use1-az4"], lambda o: current_gpu(o) and o["zone"] == "use1-az4"),
        (["--market", "spot"], lambda o: current_gpu(o) and o["market"] == "spot"),
        (["--market", "on-demand"], lambda o: current_gpu(o) and o["market"] == "on-demand"),
        (["--max-price", "$0.50"], lambda o: current_gpu(o) and o["price_usd_per_hour"] <= 0.5),
        (["--min-memory", "1 TiB"], lambda o: current_gpu(o) and o["memory_gib"] >= 1024),
        (["--min-gpu-memory", "80"], lambda o: current_gpu(o) and o["gpu_memory_gib"] >= 80),
        (["--efa"], lambda o: current_gpu(o) and o["efa_interface_count"] > 0),
        (["--cpu", "--region", "us-east-2", "--market", "spot", "--max-price", "0.1"],
         lambda o: o["gpu_count"] == 0 and o["region"] == "us-east-2" and o["market"] == "spot"
         and o["price_usd_per_hour"] <= 0.1),
    ],
    ids=lambda flags: " ".join(flags) if isinstance(flags, list) else "",
)  # fmt: skip
def test_flags_keep_what_they_say_cheapest_first(
    flags: list[str], wanted: Callable[[Record], bool]
) -> None:
    expected = sorted((offer for offer in every_offer() if wanted(offer)), key=_order)

    assert printed_json("catalog", "list", *flags)["offers"] == expected != []


def test_a_job_keeps_what_its_limits_allow_and_its_memory_fits() -> None:
    found = printed_json("catalog", "list", "--job", EXAMPLE)["offers"]

    assert sorted(found, key=_order) == sorted(
        (
            offer
            for offer in every_offer()
            if current_gpu(offer)
            and offer["region"] == "us-east-1"
            and offer["gpu_name"] in ("T4", "A10G", "L4", "L40S")
            and offer["gpu_memory_gib"] > 7.8  # what 128 images of ResNet-50 take
        ),
        key=_order,
    )


def test_a_job_leaves_out_excluded_pools_unless_their_cool_down_is_over(tmp_path: Path) -> None:
    excluded, cooling, cooled = (f"g4dn.xlarge@use1-az{n}/spot" for n in (1, 2, 4))
    job = tmp_path / "job.yaml"
    job.write_text(
        f"{EXAMPLE.read_text()}  exclude_pools:\n    - {excluded}\n"
        f"    - {{pool: {cooling}, until: 9999-01-01T00:00:00Z}}\n"
        f"    - {{pool: {cooled}, until: 2020-01-01T00:00:00Z}}\n"
    )

    def pools(path: Path) -> set[str]:
        offers = printed_json("catalog", "list", "--job", path)["offers"]
        return {f"{o['instance_type']}@{o['zone']}/{o['market']}" for o in offers}

    assert pools(EXAMPLE) - pools(job) == {excluded, cooling}
    assert pools(job) < pools(EXAMPLE)


@pytest.mark.parametrize(
    ("pin", "complaint"),
    [
        ("g4dn.xlrge@use1-az4/spot", "unknown instance type 'g4dn.xlrge'; did you mean"),
        ("g4dn.xlarge@use1-az44/spot", "unknown zone 'use1-az44'; did you mean 'use1-az4'?"),
        ("g4dn.xlarge@use2-az1/spot", "us-east-2 is not in limits.regions"),
        ("p4d.24xlarge@use1-az4/spot", "A100 is not in limits.gpus"),
        ("g4dn.xlarge@use1-az4", "is not a pool; write TYPE@ZONE/MARKET"),
    ],
)
def test_a_wrong_pin_in_a_job_is_pointed_at_in_the_file(
    tmp_path: Path, pin: str, complaint: str
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(f"{EXAMPLE.read_text()}  pin_pools:\n    {pin}: 1\n")

    done = spotwright("catalog", "list", "--job", job)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {job}:{len(EXAMPLE.read_text().splitlines()) + 2}: ")
    assert complaint in done.stderr


def test_the_table_has_a_line_for_each_offer_and_notes_stay_off_stdout() -> None:
    flags = ["catalog", "list", "--gpu", "T4", "--region", "us-east-1", "--market", "spot"]

    done = spotwright(*flags)

    header, *lines = done.stdout.splitlines()
    offers = printed_json(*flags)["offers"]
    assert header.split()[:2] == ["type", "GPU"]
    assert [line.split()[0] for line in lines] == [offer["instance_type"] for offer in offers]
    assert f"{len(offers)} offers; prices of 2026-" in done.stderr


def test_other_clouds_have_offers_too() -> None:
    for cloud, zone_count in (("gcp", 121), ("azure", 8)):
        found = printed_json("catalog", "list", "--cloud", cloud, "--retired")["offers"]
        assert 1 < len({offer["zone"] for offer in found}) <= zone_count


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--gpu", "T44"], "error: unknown GPU 'T44'; did you mean 'T4'?"),
        (["--type", "g5.xlrge"], "did you mean 'g5.xlarge'?"),
        (["--region", "us-esat-1"], "did you mean 'us-east-1'?"),
        (["--zone", "use1-az44"], "did you mean 'use1-az4'?"),
        (["--max-price", "cheap"], "cannot read 'cheap' as an amount such as $20"),
        (["--max-price", ""], "cannot read '' as an amount"),
        (["--min-memory", "-4"], "cannot read '-4' as a memory size"),
        (["--market", "futures"], "'futures' is not one of 'spot', 'on-demand'"),
        (["--cloud", "ibm"], "'ibm' is not one of"),
        (["--gpus", "T4"], "No such option: --gpus"),
        (["--job", "absent.yaml"], "error: absent.yaml: no such file"),
        (["--job", str(EXAMPLE), "--gpu", "T4"], "--job takes its filters from the job's limits"),
    ],
    ids=" ".join,
)
def test_a_wrong_flag_is_exit_2_with_a_message_and_no_output(
    flags: list[str], complaint: str
) -> None:
    done = spotwright("catalog", "list", *flags, "--json")

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_name_in_a_job_is_pointed_at_in_the_file(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(EXAMPLE.read_text().replace("[T4, A10G", "[T44, A10G"))

    done = spotwright("catalog", "list", "--job", job)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {job}:23: unknown GPU 'T44'; did you mean 'T4'?\n"
