"""The import rules of .importlinter: each one catches what it forbids."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
VIOLATIONS = [
    ("daemon/spotwright/domain/units.py", "spotwright.usecases.ports", "A folder imports only"),
    ("daemon/spotwright/adapters/jobfile/read.py", "spotwright.adapters.catalog.names",
     "Adapters never import"),
    ("daemon/spotwright/adapters/measurements/read.py", "spotwright.adapters.jobfile.read",
     "Adapters never import"),
    ("agent/spotwright_agent/readings.py", "spotwright.domain.units", "The agent imports"),
    ("daemon/spotwright/cli/config.py", "spotwright.v1.catalog_pb2", "Generated messages"),
    ("daemon/spotwright/adapters/catalog/names.py", "spotwright.v1.catalog_pb2",
     "Generated messages"),
    ("daemon/spotwright/domain/units.py", "numpy", "The domain is standard library"),
    ("daemon/spotwright/perfmodel/batch.py", "random", "The core does no"),
    ("daemon/spotwright/planner/__init__.py", "secrets", "The core does no"),
    ("daemon/spotwright/domain/units.py", "os", "The core does no"),
]  # fmt: skip


def broken_contracts(folder: Path) -> list[str]:
    done = subprocess.run(
        [LINT_IMPORTS, "--config", REPOSITORY / ".importlinter", "--no-cache"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": f"{folder / 'daemon'}:{folder / 'agent'}"},
    )
    assert "Contracts: " in done.stdout, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if " BROKEN" in line]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the packages to where a rule may be broken."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("daemon", "agent"):
        skipped = shutil.ignore_patterns("__pycache__", "data")
        shutil.copytree(REPOSITORY / name, folder / name, ignore=skipped)
    return folder


@pytest.mark.parametrize(("file", "module", "contract"), VIOLATIONS)
def test_a_forbidden_import_breaks_its_contract(
    source: Path, file: str, module: str, contract: str
) -> None:
    text = (source / file).read_text(encoding="utf-8")
    (source / file).write_text(f"{text}\nimport {module}\n", encoding="utf-8")
    try:
        broken = broken_contracts(source)
    finally:
        (source / file).write_text(text, encoding="utf-8")

    assert any(line.startswith(contract) for line in broken), broken


@pytest.mark.parametrize("package", ["adapters/grpc", "client"])
def test_the_grpc_adapter_and_the_client_may_import_the_wire_contract(
    source: Path, package: str
) -> None:
    folder = source / "daemon" / "spotwright" / package
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").touch()
    (folder / "injected.py").write_text("import spotwright.v1.catalog_pb2\n", encoding="utf-8")

    broken = broken_contracts(source)

    assert [line for line in broken if line.startswith("Generated messages")] == []
