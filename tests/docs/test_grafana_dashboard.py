"""The dashboard asks only for what the daemon exports."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.adapters.metrics.example_sources import busy_metrics, families

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "spotwright.json"
SCRAPED = {"instance"}  # given by Prometheus itself, to every series


class Selector(NamedTuple):
    """One metric in a query, with the labels that it is filtered by."""

    metric: str
    labels: frozenset[str]


def dashboard() -> Any:
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def panels() -> list[Any]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def exported() -> dict[str, set[str]]:
    """Return the labels of each sample that the daemon exports."""
    metrics = busy_metrics(per_gpu=True)
    metrics.observe_plan("optimal", 1.0)
    metrics.observe("/spotwright.v1.JobService/GetJob", "OK", 1.0)
    labels: dict[str, set[str]] = {"spotwright_metrics_failures_total": {"source"}}
    for family in families(metrics).values():
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def selectors(query: str) -> Iterator[Selector]:
    for metric, braces in re.findall(r"(spotwright_[a-z_]+)(\{[^}]*\})?", query):
        yield Selector(metric, frozenset(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", braces)))


def grouped_labels(query: str) -> set[str]:
    return {
        label.strip()
        for group in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", query)
        for label in group.split(",")
    }


EXPORTED = exported()
ALL_QUERIES = queries()


@pytest.mark.parametrize("query", ALL_QUERIES)
def test_a_query_names_only_metrics_and_labels_that_are_exported(query: str) -> None:
    found = list(selectors(query))

    assert found
    for selector in found:
        assert selector.metric in EXPORTED
        assert selector.labels <= EXPORTED[selector.metric] | SCRAPED
    known = set().union(*(EXPORTED[selector.metric] for selector in found)) | SCRAPED
    assert grouped_labels(query) <= known


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_legend_shows_only_labels_that_its_query_keeps(panel: Any) -> None:
    for target in panel["targets"]:
        kept = grouped_labels(target["expr"]) or SCRAPED
        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert shown <= kept


def test_variables_are_made_of_labels_that_are_exported() -> None:
    asked = [
        variable["definition"]
        for variable in dashboard()["templating"]["list"]
        if variable["type"] == "query"
    ]
    for definition in asked:
        (selector,) = selectors(definition)
        label = definition.rstrip(")").rpartition(",")[2].strip()
        assert {label, *selector.labels} <= EXPORTED[selector.metric] | SCRAPED


def test_every_metric_of_agents_and_of_the_daemon_is_on_the_dashboard() -> None:
    asked = {selector.metric for query in ALL_QUERIES for selector in selectors(query)}
    ours = {
        re.sub(r"_(bucket|sum|count|created)$", "", name)
        for name in EXPORTED
        if not name.startswith(("spotwright_gpu_", "spotwright_process_"))
        and not name.endswith("_created")
    }
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked}

    # Who is connected is told by the count; which agent it is, by the variable.
    assert ours - shown == {"spotwright_agent_connected"}


def test_the_data_source_is_chosen_by_the_reader() -> None:
    found = re.findall(r'"uid": "([^"]*)"', DASHBOARD.read_text(encoding="utf-8"))

    assert set(found) == {"${datasource}", "spotwright"}


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    everything = dashboard()["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in everything)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len({panel["id"] for panel in everything}) == len(everything)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23
