"""Whatever is wrong with a job file, the complaint names the file, the line and the way out."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright.adapters.jobfile.read import parse_job, read_job_file
from spotwright.domain.errors import JobFileError, UnknownNameError
from tests.adapters.jobfile.example_jobs import EXAMPLES, JOB_FILES, SMALL


def _changed(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


def _error(text: str) -> JobFileError:
    with pytest.raises(JobFileError) as caught:
        parse_job(text, path="job.yaml")
    return caught.value


def test_the_small_job_is_good_so_that_each_change_alone_is_to_blame() -> None:
    assert parse_job(SMALL, path="job.yaml").spec.name == "small"


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("", None, "the file is empty"),
        ("# only a comment\n\n", None, "the file is empty"),
        ("\n\n- name: a list\n", 3, "expected `key: value` lines at the top"),
        ("just words", 1, "expected `key: value` lines at the top"),
        ("name: x\n\tworkload: y\n", 2, "not valid YAML: found character '\\t'"),
        ("name: x\nworkload: {strategy: [\n", 3, "not valid YAML"),
        ("name: x\x00y", 1, "#x0000 is not allowed"),
        ("name: x\n# \x07\n", 2, "#x0007 is not allowed"),
        ('name: "\\UFFFFFFFF"', None, "not valid YAML"),
        ("%YAML " + "9" * 5000 + ".1\n---\na: b", None, "not valid YAML"),
        ("name: x\n---\nname: y\n", 2, "not valid YAML: but found another document"),
        ("? [a, b]\n: c\n", 1, "a key must be plain text"),
        ("name: *nobody\n", 1, "not valid YAML: found undefined alias"),
        ("name: x\nlimits: &all [*all]\n", 2, "too large or self-referring"),
        ("name: x\nlimits: &all {a: *all}\n", 2, "too large or self-referring"),
        ("a: " + "[" * 3000, None, "nested too deeply"),
        (SMALL + "name: again\n", 14, "the key 'name' is given twice"),
        (_changed("steps: 100", "steps: 100\n  steps: 200"), 11, "'steps' is given twice"),
        (_changed("deadline: 4h", "deadline: -4h"), 11, "goal.deadline: cannot read '-4h'"),
        (_changed("deadline: 4h", "deadline: 4 parsecs"), 11, "as a duration such as 4h"),
        (_changed("deadline: 4h", "deadline: 1,5h"), 11, "cannot read '1,5h'"),
        (_changed("10 MB", "10 MByte"), 5, "a size such as 11.5 MB or 2 GiB"),
        (_changed("steps: 100", "steps: nan"), 10, "cannot read 'nan'"),
        (_changed("max_nodes: 8", "max_nodes: 2.5"), 13, "a whole number"),
        (_changed("max_nodes: 8", "max_nodes: 1e400"), 13, "cannot read '1e400'"),
        (_changed("max_nodes: 8", "markets: [spot, cheap]"), 13, "'spot' or 'on-demand'"),
        (_changed("max_nodes: 8", "max_vcpus: {sport: {p: 8}}"), 13, "'spot' or 'on-demand'"),
        (_changed("max_nodes: 8", "max_parameter_servers: 0"), 13, "cannot read '0'"),
        (_changed("asp-ps", "gossip"), 3, "'asp-ps', 'bsp-ps', 'allreduce' or 'serverless'"),
        (_changed("name: small", "name: Not A Name"), 1, "got 'Not A Name'"),
        (_changed("  model:\n    parameter_size: 10 MB\n", ""), 2, "'workload.model' is missing"),
        (_changed("limits:\n  max_nodes: 8", "limits:"), 12, "expected `key: value` lines below"),
        (_changed("compute:\n    T4", "compute: fast\n  x"), 7, "compute: "),
        (_changed("  steps: 100\n", ""), 9, "exactly one of loss, samples, steps, epochs, tokens"),
        (_changed("steps: 100", "steps: 9\n  samples: 9"), 9, "exactly one of loss, samples"),
        (_changed("{per_gpu: 64}", "{per_gpu: 64, whole: 9}"), 6, "exactly one of per_gpu"),
        (_changed("{per_gpu: 64}", "{per_gpu: 64, max_per_gpu: 9}"), 6, "max_per_gpu goes with"),
        (_changed("step: 1 s, batch: 64", "step: 1 s"), 8, "either step and batch"),
        (_changed("step: 1 s,", "step: 1 s, per_sample: 1 ms,"), 8, "either step and batch"),
        (_changed("step: 1 s,", "step: 1 s, fixed: 1 ms,"), 8, "either step and batch"),
    ],
)  # fmt: skip
def test_a_complaint_names_the_line_and_the_way_out(
    text: str, line: int | None, complaint: str
) -> None:
    error = _error(text)

    assert error.line == line
    assert complaint in str(error)
    assert str(error).startswith("job.yaml: " if line is None else f"job.yaml:{line}: ")


@pytest.mark.parametrize(
    ("text", "line", "where", "nearest"),
    [
        (SMALL + "lmits: {}\n", 14, "lmits", "limits"),
        (_changed("  batch:", "  bacth:"), 6, "workload.bacth", "batch"),
        (_changed("10 MB", "10 MB\n    tensor: 3"), 6, "workload.model.tensor", "tensors"),
        (_changed("10 MB", "10 MB\n    memory: {reservd: 1 GB}"), 6,
         "workload.model.memory.reservd", "reserved"),
        (_changed("batch: 64}", "batch: 64, spred: 5%}"), 8, "workload.compute.T4.spred", "spread"),
        (_changed("deadline: 4h", "deadlin: 4h"), 11, "goal.deadlin", "deadline"),
        (_changed("max_nodes", "max_node"), 13, "limits.max_node", "max_nodes"),
        (_changed("goal:", "  convergence: {law: cynthia, k0: 1, k1: 1, sprd: 1}\ngoal:"), 9,
         "workload.convergence.cynthia.sprd", "spread"),
        (_changed("max_nodes: 8", "exclude_pools:\n    - {pool: a@b/spot, untl: 2026-11-16}"), 14,
         "limits.exclude_pools.0.cool-down.untl", "until"),
    ],
)  # fmt: skip
def test_an_unknown_key_names_its_place_and_the_nearest_known_one(
    text: str, line: int, where: str, nearest: str
) -> None:
    error = _error(text)

    assert f"job.yaml:{line}: unknown key {where!r}; did you mean {nearest!r}?" in str(error)


def test_an_unknown_key_near_to_nothing_lists_the_known_ones_of_that_place() -> None:
    error = _error(SMALL + "zzzzzz: 1\n")

    assert str(error).endswith(
        "unknown key 'zzzzzz'; known keys: goal, limits, name, workload, workloads"
    )


def test_all_errors_are_told_at_once_each_with_its_line() -> None:
    text = _changed("10 MB", "ten").replace("deadline: 4h", "deadline: -1").replace("max_n", "mx_n")

    told = str(_error(text)).split("\n")

    assert [line.split(": ")[0] for line in told] == ["job.yaml:5", "job.yaml:11", "job.yaml:13"]


@pytest.mark.parametrize(
    ("key", "one"),
    [("regions", "region"), ("zones", "zone"), ("types", "type"), ("gpus", "gpu"),
     ("markets", "market"), ("parameter_server_types", "parameter server type")],
)  # fmt: skip
def test_an_empty_list_is_not_taken_to_mean_all(key: str, one: str) -> None:
    error = _error(_changed("max_nodes: 8", f"{key}: []"))

    expected = f"limits.{key}: name at least one {one}, or leave the key out"
    assert str(error) == f"job.yaml:13: {expected}"


@pytest.mark.parametrize("key", ["exclude_types: []", "exclude_pools: []", "pin_pools: {}"])
def test_an_empty_list_of_exclusions_or_pins_says_nothing(key: str) -> None:
    usual = parse_job(_changed("  max_nodes: 8", "  max_nodes: 64"), path="job.yaml")

    assert parse_job(_changed("max_nodes: 8", key), path="job.yaml").specs == usual.specs


ALLREDUCE = _changed("asp-ps", "allreduce")
SECOND = "workloads: {a: {strategy: asp-ps, model: {parameter_size: 1 MB}, batch: {per_gpu: 1}, compute: {T4: {per_sample: 1 s}}}}\n"  # noqa: E501
NO_WORKLOAD = SMALL[: SMALL.index("workload:")] + SMALL[SMALL.index("goal:") :]
SERVERLESS_LAW = "  serverless: {samples_per_s: {per_mb: 1, offset: 1}, batch_per_function: 8, max_global_batch: 8}\n"  # noqa: E501


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ALLREDUCE.replace("goal:", "  parameter_server: {count: 2}\ngoal:"),
         "strategy allreduce has no use for parameter_server"),
        (_changed("goal:", "  allreduce: {compression: 2}\ngoal:"),
         "strategy asp-ps has no use for allreduce"),
        (_changed("goal:", SERVERLESS_LAW + "goal:"), "strategy asp-ps has no use for serverless"),
        (_changed("asp-ps", "serverless"), "strategy serverless has no use for batch"),
        (_changed("asp-ps", "serverless").replace("  batch: {per_gpu: 64}\n", ""),
         "strategy serverless needs a serverless section"),
        (SMALL + SECOND, "give either workload, or workloads by model"),
        (NO_WORKLOAD, "give either workload, or workloads by model"),
        (NO_WORKLOAD.replace("steps: 100", "loss: 1") + SECOND,
         "goal.loss needs workload.convergence"),
        (_changed("  batch: {per_gpu: 64}\n", ""), "strategy asp-ps needs a batch section"),
        (_changed("  compute:\n    T4: {step: 1 s, batch: 64}\n", ""),
         "give compute for at least one device, or model.flops_per_sample"),
        (_changed("steps: 100", "loss: 0.5"), "goal.loss needs workload.convergence"),
        (_changed("steps: 100", "epochs: 3"), "goal.epochs needs workload.dataset.samples"),
        (_changed("steps: 100", "tokens: 1B"), "workload.dataset.tokens_per_sample"),
        (_changed("goal:", "  parameter_server: {contention: spotdnn}\ngoal:"),
         "contention: spotdnn needs requested_bandwidth, contention_slope, contention_offset"),
        (_changed("goal:", "  convergence: {law: magic}\ngoal:"),
         "'spotdnn', 'cynthia', 'noise-scale'"),
    ],
)  # fmt: skip
def test_parts_that_do_not_go_together_are_refused(text: str, complaint: str) -> None:
    assert complaint in str(_error(text))


def test_a_file_of_several_workloads_asks_which_one_is_meant() -> None:
    functions = f"strategy: serverless, model: {{parameter_size: 1 MB}}, {SERVERLESS_LAW.strip()}"
    both = SECOND.replace("}}}}", f"}}}}}}, b: {{{functions}}}}}")
    loaded = parse_job(NO_WORKLOAD + both, path="job.yaml")

    assert loaded.of_model("b").workload.strategy == "serverless"  # which needs no data set here
    with pytest.raises(
        JobFileError, match=r"job\.yaml: it has several workloads; choose one with --model: a, b"
    ):
        _ = loaded.spec
    with pytest.raises(JobFileError, match="it has no workload 'c'; choose one with --model: a, b"):
        loaded.of_model("c")


def test_a_fitted_range_given_backwards_is_refused() -> None:
    text = (EXAMPLES / "wide-resnet-asp.yaml").read_text(encoding="utf-8")

    error = _error(text.replace("[64, 1024]", "[1024, 64]"))

    assert "fitted_batch must be [smallest, largest], got [1024, 64]" in str(error)


def test_an_alias_bomb_is_refused_at_once() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]

    error = _error("\n".join(["l0: &l0 [x, x, x, x, x, x, x, x, x, x]", *levels]))

    assert "too large or self-referring" in str(error)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=r"absent\.yaml: no such file"):
        read_job_file(tmp_path / "absent.yaml")


def test_a_folder_is_not_a_job_file(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match="cannot be read: Is a directory"):
        read_job_file(tmp_path)


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Be somebody whom file modes bind: root is not."""
    user, nobody = os.geteuid(), 65534
    os.seteuid(nobody if user == 0 else user)
    yield
    os.seteuid(user)


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "job.yaml"
    file.write_text(SMALL)
    file.chmod(0o200)
    return file


@pytest.mark.usefixtures("secret_file", "unprivileged")
def test_a_file_without_read_permission_says_so(secret_file: Path) -> None:
    with pytest.raises(JobFileError, match="cannot be read: Permission denied"):
        read_job_file(secret_file)


@pytest.mark.parametrize(
    "content", [b"\x7fELF\x02\xff\xfe", SMALL.encode("utf-16"), b"name: caf\xe9"]
)
def test_a_file_that_is_not_utf_8_says_so(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(content)

    with pytest.raises(JobFileError, match="not a text file"):
        read_job_file(file)


def test_a_file_too_large_for_a_job_is_not_read_to_its_end(tmp_path: Path) -> None:
    large = tmp_path / "job.yaml"
    large.write_text(SMALL + "#" * 1_000_000)

    for endless_or_large in (large, Path("/dev/zero")):
        with pytest.raises(JobFileError, match="larger than 1,000,000 bytes"):
            read_job_file(endless_or_large)


def test_an_unknown_hardware_name_is_found_in_the_file() -> None:
    loaded = parse_job(_changed("max_nodes: 8", "gpus: [T4, T44]"), path="job.yaml")

    error = loaded.locate(UnknownNameError("GPU", "T44", known=["T4"]))

    assert str(error) == "job.yaml:13: unknown GPU 'T44'; did you mean 'T4'?"


TEXTS = [file.read_text(encoding="utf-8") for file in JOB_FILES]
CUTS = st.tuples(st.integers(0, 2000), st.integers(0, 60), st.text(max_size=4))


@given(st.sampled_from(TEXTS), st.lists(CUTS, min_size=1, max_size=3))
def test_an_example_with_letters_changed_reads_or_is_a_job_file_error(
    text: str, cuts: list[tuple[int, int, str]]
) -> None:
    for start, length, put_in in cuts:
        place = start % (len(text) + 1)
        text = text[:place] + put_in + text[place + length :]

    with contextlib.suppress(JobFileError):
        parse_job(text, path="job.yaml")


@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_an_example_with_lines_dropped_moved_and_doubled_reads_or_is_a_job_file_error(
    text: str, random: Random
) -> None:
    lines = text.split("\n")
    for _ in range(3):
        line = lines.pop(random.randrange(len(lines)))
        for moved in random.choice([[], [line], [line, line], [line.strip()], ["  " + line]]):
            lines.insert(random.randrange(len(lines)), moved)

    with contextlib.suppress(JobFileError):
        parse_job("\n".join(lines), path="job.yaml")


@given(st.text())
def test_any_text_reads_or_is_a_job_file_error(text: str) -> None:
    with contextlib.suppress(JobFileError):
        parse_job(text, path="job.yaml")
