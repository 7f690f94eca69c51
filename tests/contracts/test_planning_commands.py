import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.small_job import TEXT_CNN, small_job
from tests.contracts.planning import EXAMPLES, assert_same, told
from tests.served_planner import served_planner

JOBS = sorted(EXAMPLES.glob("*.yaml"))
RESNET = EXAMPLES / "resnet50.yaml"
_SECONDS = re.compile(r"[\d.]+\s(ms|s)\b")  # that the search took
FLEETS = ("g5.xlarge*4/spot", "g6.xlarge*6/spot + g4dn.xlarge*2")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_planner(tmp_path_factory.mktemp("daemon")) as served:
        yield served.address


@pytest.mark.timeout(300)
@pytest.mark.parametrize("job", JOBS, ids=[job.stem for job in JOBS])
def test_a_plan_is_the_same_for_every_example(daemon: str, job: Path) -> None:
    # A search that its time limit ends may end with another fleet.
    asked = ("--gap", "0.1", "--time-limit", "120s", "--json")
    assert assert_same(daemon, "plan", job, *asked).exit_code == 0


@pytest.mark.parametrize("objective", ["cost", "time", "pareto"])
def test_a_plan_is_the_same_for_every_objective(
    daemon: str, objective: str, tmp_path: Path
) -> None:
    job = small_job(tmp_path)

    said = assert_same(daemon, "plan", job, "--objective", objective, "--json")

    assert json.loads(said.stdout)["objective"] == objective


@pytest.mark.parametrize(
    "flags",
    [
        ("--deadline", "1h"),  # nothing is so fast
        ("--deadline", "1h", "--json"),
        ("--budget", "$1", "--json"),
        ("--deadline", "100h", "--confidence", "0.5", "--budget", "$900"),
        ("--existing", "g4dn.xlarge*3@use1-az6/spot", "--json"),
        ("--existing", "g4dn.xlarge*3@use1-az6/spot", "--switching", "0"),
        ("--existing", "g4dn.xlarge*", "--json"),
        ("--existing", "no-such-type", "--json"),
        ("--target-loss", "0.1", "--json"),
        ("--time-limit", "nonsense"),
        ("--model", "other"),
    ],
    ids=" ".join,
)
def test_flags_mean_the_same(daemon: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    assert_same(daemon, "plan", small_job(tmp_path), *flags)


def test_terraform_variables_are_the_same_but_for_the_name_of_the_plan(
    daemon: str, tmp_path: Path
) -> None:
    job, file = small_job(tmp_path), tmp_path / "fleet.auto.tfvars.json"

    printed = [told("plan", job, "--tfvars", "-", *flags) for flags in ((), ("--daemon", daemon))]
    written = told("plan", job, "--tfvars", file, "--daemon", daemon, "--json")

    here, there = (json.loads(said.stdout) for said in printed)
    assert here["pools"]
    assert here | {"plan_id": ""} == there | {"plan_id": ""}
    assert written.stderr == f"Terraform variables written to {file}\n"
    assert json.loads(file.read_text(encoding="utf-8"))["pools"] == here["pools"]


def test_a_report_is_the_same(daemon: str, tmp_path: Path) -> None:
    job, page = small_job(tmp_path), tmp_path / "page.html"
    pages = []
    for flags in ((), ("--daemon", daemon)):
        assert told("plan", job, "--report", page, "--json", *flags).exit_code == 0
        pages.append(_SECONDS.sub("...", page.read_text(encoding="utf-8")))

    assert pages[0] == pages[1]


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", RESNET, "--fleet", FLEETS[0]),
        ("predict", RESNET, "--fleet", FLEETS[1]),
        ("predict", RESNET, "--fleet", "V100*3"),  # nobody rents them out: no price
        ("predict", RESNET, "--fleet", "g5.xlarge*"),
        ("predict", RESNET, "--fleet", "g5.xlarj"),
        ("predict", EXAMPLES / "mobilenet-serverless.yaml", "--fleet", "lambda:2560*8"),
        ("predict", EXAMPLES / "wide-resnet-asp.yaml", "--fleet", "g4dn.xlarge*3 + ps=m5.xlarge"),
        ("predict", RESNET),
        ("compare", RESNET, "--fleet", FLEETS[0], "--fleet", FLEETS[1]),
        ("compare", RESNET, "--fleet", FLEETS[0], "--fleet", "p5.48xlarge*64"),
        ("compare", TEXT_CNN, "--fleet", "m5.xlarge*2", "--fleet", "m5.xlarge*4 + ps=m5.xlarge"),
        ("compare", RESNET, "--fleet", FLEETS[0], "--fleet", "x"),
        ("catalog", "list", "--gpu", "T4", "--region", "us-east-1"),
        ("catalog", "list", "--gpu", "t4", "--market", "spot", "--max-price", "$0.30"),
        ("catalog", "list", "--type", "p2.xlarge"),
        ("catalog", "list", "--gpu", "T44"),
        ("catalog", "list", "--job", RESNET),
        ("catalog", "list", "--min-memory", "9999 GiB"),
        ("catalog", "list", "--cloud", "gcp", "--gpu", "T4"),
        ("catalog", "show", "g5.12xlarge"),
        ("catalog", "show", "M5.xlarge"),
        ("catalog", "show", "g5.12xlarj"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments)).replace(f"{EXAMPLES}/", ""),
)
def test_answers_are_the_same(
    daemon: str, arguments: tuple[str | Path, ...], as_json: tuple[str, ...]
) -> None:
    assert_same(daemon, *arguments, *as_json)


CONFIGS = """strategy,fleet,batch_per_gpu,ps_count,ps_type
allreduce,g5.xlarge*2,64,,
allreduce,g4dn.12xlarge:2*3,32,,
"""


@pytest.mark.parametrize(
    ("csv", "flags"),
    [
        (CONFIGS, ()),
        (CONFIGS, ("--json",)),
        (CONFIGS + "allreduce,g5.xlarj*2,64,,\n", ()),
        ("strategy,fleet\nallreduce,g5.xlarge\n", ()),
        ("", ()),
    ],
)
def test_a_table_is_the_same(daemon: str, csv: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    configs = tmp_path / "configs.csv"
    configs.write_text(csv, encoding="utf-8")

    assert_same(daemon, "predict", RESNET, "--configs", configs, *flags)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("workload:", "wrkload:"),
        ("gpus: [T4, A10G, L4, L40S]", "gpus: [T4, A10H]"),
        ("max_nodes: 32", "max_nodes: many"),
        ("workload:", "workload: ["),
        ("max_nodes: 32", "\n".join(f"  unknown_{i}: 1" for i in range(400))),
    ],
)
def test_a_bad_job_file_is_complained_of_alike(
    daemon: str, old: str, new: str, tmp_path: Path
) -> None:
    text = RESNET.read_text(encoding="utf-8")
    assert old in text
    job = tmp_path / "job.yaml"
    job.write_text(text.replace(old, new), encoding="utf-8")

    for command in (("plan",), ("predict", "--fleet", "g5.xlarge")):
        assert assert_same(daemon, *command, job).exit_code == 2


def test_a_job_file_that_is_missing_or_no_text_is_complained_of_alike(
    daemon: str, tmp_path: Path
) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")

    assert_same(daemon, "plan", tmp_path / "none.yaml")
    assert_same(daemon, "plan", binary)
