"""The parts of the page that need nothing but the job and its plan."""

from datetime import UTC

from spotwright.adapters.report import words
from spotwright.adapters.report.bars import range_bar, step_bar
from spotwright.adapters.report.markup import Html, items, joined, table, tag
from spotwright.domain.fleet import NodeGroup
from spotwright.domain.job import JobSpec
from spotwright.domain.plan import Plan, PlanStatus
from spotwright.domain.prediction import GroupPrediction, Prediction
from spotwright.domain.units import format_usd

_TERM_NAMES = {
    "compute": "compute",
    "pcie": "PCIe",
    "nvlink": "NVLink",
    "network": "network",
    "ps_service": "parameter server",
    "input_stall": "waiting for input",
}
_NOTHING = "\N{EN DASH}"


def section(title: str, *content: str) -> Html:
    """Return a part of the page under its heading."""
    return tag("section", tag("h2", title), *content)


def summary(job: JobSpec, plan: Plan) -> Html:
    """Return the sentence that matters most, and its figures."""
    return tag(
        "header",
        tag("p", "Training plan", class_="eyebrow"),
        tag("h1", job.name),
        tag("p", words.headline(job, plan), class_="headline"),
        tag("dl", *_tiles(job, plan), class_="tiles"),
    )


def fleet(prediction: Prediction) -> Html:
    """Return what to rent."""
    rows = [_group_row(group) for group in prediction.fleet.nodes]
    functions = prediction.fleet.functions
    if functions:
        device = f"Lambda, {functions.memory_mb:,} MB"
        count = str(functions.function_count)
        rows.insert(0, ["worker", count, device, _NOTHING, "serverless", "by use", "by use"])
    total = words.usd(prediction.fleet.usd_per_hour)
    whole = [Html("<b>Sum</b>"), _total_count(prediction), "", "", "", "",
             f"{total} + use" if functions else total]  # fmt: skip
    head = ["Role", "Count>", "Type", "Zone", "Market", "Price per hour>", "Sum per hour>"]
    return section("The fleet", table("What to rent", head, rows, whole))


def why(plan: Plan) -> Html:
    """Return why this fleet won, what limits cost, and what else there is."""
    parts = [items([words.sentence(text) for text in plan.why])] if plan.why else []
    if plan.savings:
        rows = [[s.limit, s.change, format_usd(s.saves_usd)] for s in plan.savings]
        head = ["Limit", "If it were relaxed by", "Saves>"]
        parts.append(table("What relaxed limits would save", head, rows))
    if plan.alternatives:
        head = ["Alternative", "Fleet", "Cost>", "Time>", "What it gives up"]
        rows = [
            [
                a.label,
                words.fleet_text(a.prediction),
                words.usd(a.cost_usd),
                words.duration(a.prediction.duration_s.mid),
                a.gives_up,
            ]
            for a in plan.alternatives
        ]
        parts.append(table("Fleets of another kind", head, rows))
    nothing = tag("p", "The planner gave no reasons and no alternatives.", class_="quiet")
    return section("Why it won", *(parts or [nothing]))


def steps(prediction: Prediction) -> Html:
    """Return where each step's time goes, a bar for each group of workers."""
    longest_s = max(group.terms.total_s for group in prediction.groups)
    bars = [_step(prediction, group, longest_s) for group in prediction.groups]
    bottleneck = _TERM_NAMES.get(prediction.bottleneck, prediction.bottleneck)
    told = (
        f"Most of a step goes to {bottleneck}; the network counts at its "
        f"{prediction.network_basis} rate. Overlapped time is not counted twice."
    )
    return section("Where each step's time goes", tag("p", told), *bars)


def risk(job: JobSpec, plan: Plan) -> Html:
    """Return what can still go wrong."""
    p, deadline_s = plan.prediction, job.goal.deadline_s
    key = [
        key_entry("range", f"90 % interval: {words.duration_range(p.duration_s)}"),
        key_entry("middle", f"expected: {words.duration(p.duration_s.mid)}"),
        key_entry("p95", f"95 of 100 runs end within {words.duration(p.duration_p95_s)}"),
    ]
    if deadline_s is not None:
        key.append(key_entry("deadline", f"deadline: {words.duration(deadline_s)}"))
    bar = range_bar(p.duration_s, p95_s=p.duration_p95_s, deadline_s=deadline_s)
    notes = [tag("h3", "Notes"), items([words.sentence(n) for n in p.notes])] if p.notes else []
    return section(
        "What risk remains",
        tag("dl", *_risk_figures(job, plan), class_="figures"),
        tag("figure", tag("figcaption", "When the run ends, from its start"), bar,
            items(list(key), "key")),
        *notes,
    )  # fmt: skip


def footer(job: JobSpec, plan: Plan) -> Html:
    """Return what the plan was made from."""
    observed = plan.catalog_time
    moment = observed.astimezone(UTC) if observed.tzinfo else observed
    facts = {
        "Job": job.name,
        "Prices of": f"{moment:%Y-%m-%d %H:%M} UTC",
        "Objective": words.OBJECTIVE_NAMES[plan.objective],
        "Result": words.STATUS_NAMES[plan.status],
        "Gap": words.gap(plan),
        "Solved in": words.duration(plan.solve_s),
    }
    pairs = [tag("div", tag("dt", name), tag("dd", fact)) for name, fact in facts.items()]
    return tag("footer", tag("dl", *pairs, class_="facts"), tag("p", "Made by Spotwright."))


def _tiles(job: JobSpec, plan: Plan) -> list[Html]:
    cost, duration_s = plan.prediction.cost_usd, plan.prediction.duration_s
    cost_range = words.cost_range(cost) if cost else ""
    tiles = [
        tile("Expected cost", format_usd(plan.cost_usd), cost_range),
        tile("Expected time", words.duration(duration_s.mid), words.duration_range(duration_s)),
    ]
    known, overall = words.spot_probability(plan), words.in_time_probability(plan)
    if known is not None:
        asked = f"of interruptions alone; {job.goal.confidence_fraction * 100:g} % asked for"
        beside = f"{asked}; {words.probability(overall)} with model error" if overall else asked
        tiles.append(tile("In time", words.probability(known), beside))
    if plan.status is not PlanStatus.INFEASIBLE:
        verb, bound = words.floor(plan)
        beside = f"proved; at most {words.gap(plan)} better could exist"
        tiles.append(tile(f"No fleet {verb}", bound, beside))
    return tiles


def tile(name: str, figure: str, beside: str) -> Html:
    """Return one figure with its name, and what belongs beside it."""
    small = [tag("dd", beside, class_="beside")] if beside else []
    return tag("div", tag("dt", name), tag("dd", figure), *small)


def _group_row(group: NodeGroup) -> list[str]:
    offer = group.offer
    gpus = f" with {group.gpus_per_node:g} {group.instance_type.gpu_name} each"
    beside = [tag("span", gpus, class_="quiet")] if group.gpus_per_node else []
    return [
        words.ROLE_NAMES[group.role],
        str(group.node_count),
        joined([group.instance_type.name, *beside]),
        offer.zone if offer else _NOTHING,
        str(offer.market) if offer else _NOTHING,
        words.usd(offer.price_usd_per_hour if offer else None),
        words.usd(group.usd_per_hour),
    ]


def _total_count(prediction: Prediction) -> str:
    functions = prediction.fleet.functions
    nodes = sum(group.node_count for group in prediction.fleet.nodes)
    return str(nodes + (functions.function_count if functions else 0))


def _step(prediction: Prediction, group: GroupPrediction, longest_s: float) -> Html:
    name = words.group_text(group.group) if group.group else words.functions_text(prediction.fleet)
    terms = {key: seconds for key, seconds in group.terms.by_name().items() if seconds > 0}
    told = {
        key: f"{_TERM_NAMES[key]} {words.duration(seconds)}, "
        f"{words.share(seconds / group.terms.total_s)}"
        for key, seconds in terms.items()
    }
    bar = step_bar(
        list(terms.items()), longest_s=longest_s, label=f"{name}: {'; '.join(told.values())}"
    )
    head = tag("h3", name, tag("span", f" {words.duration(group.step_s)} a step", class_="quiet"))
    return tag(
        "div", head, bar, items([key_entry(k, t) for k, t in told.items()], "key"), class_="step"
    )


def key_entry(class_: str, text: str) -> Html:
    """Return an entry of a legend, with a swatch of that style."""
    return joined([tag("span", class_=f"swatch {class_}", aria_hidden="true"), text])


def _risk_figures(job: JobSpec, plan: Plan) -> list[Html]:
    p = plan.prediction
    alone, overall = words.spot_probability(plan), words.in_time_probability(plan)
    figures = []
    if alone is not None:
        figures.append(("In time, if only spot interruptions vary", words.probability(alone)))
    if overall is not None:
        figures.append(("In time, the model's own error counted", words.probability(overall)))
    if alone is not None:
        figures.append(("Probability asked for", f"{job.goal.confidence_fraction * 100:g} %"))
    figures.append(("95 of 100 runs end within", words.duration(p.duration_p95_s)))
    untouched = p.uninterrupted_probability
    sure = "certain" if untouched == 1 else words.probability(untouched)
    figures.append(("No node is taken away", sure))
    return [tile(name, figure, "") for name, figure in figures]
