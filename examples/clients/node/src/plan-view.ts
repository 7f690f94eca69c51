/** A plan as text for people. */

import type { Infeasible__Output } from "./generated/spotwright/v1/Infeasible";
import type { Plan__Output } from "./generated/spotwright/v1/Plan";
import { fleetRows, gapFraction } from "./plan-json";

export function printPlan(plan: Plan__Output): void {
  const duration = plan.prediction?.duration_s;
  const cost = plan.prediction?.cost_usd;
  console.log(`${plan.job_name}: ${headline(plan)}\n`);
  const figures = [
    ["cost", usd(plan.cost_usd), cost ? `${usd(cost.low)} to ${usd(cost.high)}` : ""],
    ["no fleet costs less than", usd(plan.lower_bound_usd), `gap ${percent(gapFraction(plan))}`],
    ["duration", hours(duration?.mid), `${hours(duration?.low)} to ${hours(duration?.high)}`],
  ];
  if (plan.deadline_probability !== undefined) {
    figures.push(["P(deadline met)", percent(plan.deadline_probability), "of interruptions alone"]);
  }
  console.log(table(["figure", "planned", "90 % interval"], figures));
  console.log();
  console.log(table(["role", "count", "type", "zone", "market", "$/h each"], shownFleet(plan)));
  console.log();
  for (const reason of plan.why) console.log(`why: ${reason}`);
  for (const { change, saves_usd } of plan.savings) console.log(`saving: ${change} saves ${usd(saves_usd)}`);
  console.log(`bottleneck: ${plan.prediction?.bottleneck.replaceAll("_", " ")}`);
  console.log(`plan ${plan.plan_id}`);
}

export function printInfeasible(infeasible: Infeasible__Output): void {
  const found = infeasible.proved ? "no fleet meets the goal" : "no fleet was found that meets the goal";
  console.error(`${infeasible.job_name}: ${found}`);
  for (const limit of infeasible.limits) console.error(`  ${limit}`);
  const listed: [string, { text: string }[]][] = [
    ["any one of these helps:", infeasible.changes],
    ["these help together:", infeasible.together],
  ];
  for (const [title, changes] of listed) {
    if (changes.length > 0) console.error(title);
    for (const change of changes) console.error(`  change ${change.text}`);
  }
}

/** Lays out rows in columns that are as wide as what is in them. */
export function table(columns: string[], rows: string[][]): string {
  const all = [columns, ...rows];
  const widths = columns.map((_, i) => Math.max(...all.map((row) => (row[i] ?? "").length)));
  const line = (row: string[]): string =>
    row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ").trimEnd();
  return all.map(line).join("\n");
}

function headline(plan: Plan__Output): string {
  const proved = plan.status === "PLAN_STATUS_OPTIMAL";
  const status = proved ? "optimal, proved" : "feasible, the proof is not complete";
  if (gapFraction(plan) >= 1) return `${status}: nothing better is ruled out yet`;
  const floor =
    plan.lower_bound_s === undefined
      ? `costs less than ${usd(plan.lower_bound_usd)}`
      : `is faster than ${hours(plan.lower_bound_s)}`;
  return `${status}: no fleet that meets the goal ${floor}`;
}

function shownFleet(plan: Plan__Output): string[][] {
  return fleetRows(plan).map((row) => [
    row.role,
    String(row.node_count),
    row.instance_type,
    row.zone ?? "-",
    row.market ?? "-",
    row.price_usd_per_hour?.toFixed(4) ?? "-",
  ]);
}

function usd(amount: number): string {
  return `$${amount.toFixed(amount >= 1 ? 2 : 4)}`;
}

function hours(seconds: number | undefined): string {
  return seconds === undefined ? "-" : `${(seconds / 3600).toFixed(2)} h`;
}

function percent(fraction: number): string {
  return `${(fraction * 100).toFixed(2)} %`;
}
