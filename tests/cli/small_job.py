"""A job that is planned in an instant, and what `spotwright plan` says of it."""

import json
from pathlib import Path
from typing import Any

from tests.cli.command import spotwright_here

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT_CNN = EXAMPLES / "text-cnn-bsp.yaml"


def small_job(folder: Path) -> Path:
    """Write a job with three types in one zone."""
    text = (EXAMPLES / "resnet50.yaml").read_text(encoding="utf-8")
    for old, new in {
        "gpus: [T4, A10G, L4, L40S]": "types: [g4dn.xlarge, g4dn.12xlarge, g5.xlarge]\n"
        "  zones: [use1-az6]",
        "max_nodes: 32": "max_nodes: 8",
        "deadline: 16h": "deadline: 60h",
    }.items():
        assert old in text
        text = text.replace(old, new)
    job = folder / "job.yaml"
    job.write_text(text, encoding="utf-8")
    return job


def told_plan(*arguments: str | Path) -> Any:
    """Return the plan as JSON, having checked that nothing else was said."""
    done = spotwright_here("plan", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def expression(fleet: list[dict[str, Any]]) -> str:
    """Return the fleet of a plan as `--fleet` reads it."""
    terms = [
        f"{'ps=' if g['role'] == 'ps' else ''}{g['instance_type']}*{g['node_count']}"
        + (f"@{g['zone']}/{g['market']}" if g["zone"] else "")
        for g in fleet
    ]
    return " + ".join(terms)
