"""What docs/operations.md says about commands, metrics and limits is so."""

import re
import shlex
from pathlib import Path

import pytest

from spotwright.adapters.grpc.access.credentials import ServerLimits
from spotwright.adapters.grpc.access.rate_limit import DEFAULT_RATES, CallKind
from spotwright.adapters.grpc.telemetry.agent_sessions import MAX_UNACKED_BATCHES
from spotwright.adapters.grpc.telemetry.batch_reader import MAX_BATCH_BYTES
from spotwright.adapters.processes.pool import Lane
from spotwright.usecases.control_jobs import ControlTimes
from spotwright.usecases.keep_house import HouseRules
from tests.cli.command import spotwright_here
from tests.docs.test_grafana_dashboard import EXPORTED, SCRAPED, grouped_labels, selectors

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "operations.md").read_text(encoding="utf-8")
RULES = re.findall(r"^ +expr: (.+)$", TEXT, re.MULTILINE)
SHELL = "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL))
COMMANDS = re.findall(r"^(?:.*/bin/|)spotwright ([a-z].*?)(?: +#.*)?$", SHELL, re.MULTILINE)


@pytest.mark.parametrize("rule", [rule for rule in RULES if not rule.startswith("up{")])
def test_an_alert_names_only_what_is_exported(rule: str) -> None:
    found = list(selectors(rule))

    assert found
    for selector in found:
        assert selector.labels <= EXPORTED[selector.metric] | SCRAPED
    known = set().union(*(EXPORTED[selector.metric] for selector in found)) | SCRAPED
    assert grouped_labels(rule) <= known


def test_every_metric_that_the_text_names_is_exported() -> None:
    families = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in EXPORTED}
    named = set(re.findall(r"`(spotwright_[a-z_]+)`", TEXT))

    assert len(named) > 10
    assert named <= families


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_a_command_of_the_text_has_the_flags_that_it_is_given(command: str) -> None:
    words = shlex.split(command)
    verbs = [word for word in words[:2] if re.fullmatch("[a-z]+", word)]
    verbs = verbs if verbs[0] in ("certs", "tokens") else verbs[:1]

    told = spotwright_here(*verbs, "--help")

    assert told.returncode == 0
    flags = [word for word in words if word.startswith("--")]
    assert [flag for flag in flags if flag not in told.stdout] == []


def test_the_table_of_limits_has_the_numbers_of_the_code() -> None:
    limits, rates, times = ServerLimits(), DEFAULT_RATES, ControlTimes()
    call, plan, session = (rates[k] for k in (CallKind.CALL, CallKind.PLAN, CallKind.SESSION))
    expected = [
        f"| request message | {limits.max_message_bytes // 2**20} MiB |",
        f"| metadata (headers) | {limits.max_metadata_bytes // 2**10} KiB |",
        f"| calls at once on one connection | {limits.max_streams_per_connection:,} |",
        f"| calls of one caller | {call.calls_per_s:g}/s, {call.burst_count} at once |",
        f"| new plans of one caller | {plan.calls_per_s:g}/s, {plan.burst_count} at once |",
        f"| new sessions of one agent | {session.calls_per_s:g}/s, {session.burst_count} at once |",
        f"| one batch | {MAX_BATCH_BYTES // 2**10} KiB,",
        f"| un-acknowledged batches of an agent | {MAX_UNACKED_BATCHES} |",
        f"| plans waiting for a planning process | {Lane(process_count=1).max_waiting} |",
        f"a lease of {times.lease_ttl_s:g} s that is renewed every {times.period_s:g} s",
        f"**{times.lease_ttl_s + times.period_s:g} s at most**",
    ]

    assert [line for line in expected if line not in TEXT] == []


def test_what_is_kept_is_kept_as_long_as_the_text_says() -> None:
    rules = HouseRules()

    assert f"| raw batches | {rules.batches_s / 60:g} min" in TEXT
    assert f"| 10 s rollups | {rules.rollups_s[10] / 86_400:g} days |" in TEXT
    assert f"| 1 min rollups | {rules.rollups_s[60] / 86_400:g} days |" in TEXT


def test_every_file_that_the_text_links_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)

    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []
