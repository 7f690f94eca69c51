/** A plan as the part of `spotwright plan --json` that a script needs. */

import type { Infeasible__Output } from "./generated/spotwright/v1/Infeasible";
import type { NodeGroup__Output } from "./generated/spotwright/v1/NodeGroup";
import type { Plan__Output } from "./generated/spotwright/v1/Plan";
import type { SmallestChange__Output } from "./generated/spotwright/v1/SmallestChange";

export interface FleetRow {
  role: string;
  instance_type: string;
  zone: string | null;
  market: string | null;
  node_count: number;
  price_usd_per_hour: number | null;
}

/** Returns an enum's value as the command line writes it: MARKET_ON_DEMAND is on-demand. */
export function plainName(value: string, prefix: string): string {
  return value.replace(`${prefix}_`, "").toLowerCase().replaceAll("_", "-");
}

/** Returns how much better the true optimum could still be. */
export function gapFraction(plan: Plan__Output): number {
  const durationS = plan.prediction?.duration_s?.mid ?? NaN;
  if (plan.lower_bound_s !== undefined) return Math.max(0, 1 - plan.lower_bound_s / durationS);
  return Math.max(0, 1 - plan.lower_bound_usd / plan.cost_usd);
}

export function fleetRows(plan: Plan__Output): FleetRow[] {
  const fleet = plan.prediction?.fleet;
  const rows = (fleet?.nodes ?? []).map(groupRow);
  if (fleet?.functions) {
    rows.unshift({
      role: "worker",
      instance_type: `lambda:${fleet.functions.memory_mb}`,
      zone: null,
      market: "on-demand",
      node_count: fleet.functions.function_count,
      price_usd_per_hour: null,
    });
  }
  return rows;
}

export function planJson(plan: Plan__Output): object {
  return {
    status: plainName(plan.status, "PLAN_STATUS"),
    objective: plainName(plan.objective, "OBJECTIVE"),
    job: plan.job_name,
    cost_usd: plan.cost_usd,
    lower_bound_usd: plan.lower_bound_usd,
    gap_fraction: gapFraction(plan),
    duration_s: plan.prediction?.duration_s?.mid,
    deadline_probability: plan.deadline_probability ?? null,
    fleet: fleetRows(plan),
    why: plan.why,
  };
}

export function infeasibleJson(infeasible: Infeasible__Output): object {
  return {
    status: "infeasible",
    objective: plainName(infeasible.objective, "OBJECTIVE"),
    job: infeasible.job_name,
    infeasible: {
      proved: infeasible.proved,
      limits: infeasible.limits,
      changes: infeasible.changes.map(changeJson),
      together: infeasible.together.map(changeJson),
    },
  };
}

function groupRow(group: NodeGroup__Output): FleetRow {
  const offer = group.offer;
  return {
    role: plainName(group.role, "ROLE"),
    instance_type: group.instance_type?.name ?? "",
    zone: offer?.zone ?? null,
    market: offer ? plainName(offer.market, "MARKET") : null,
    node_count: group.node_count,
    price_usd_per_hour: offer?.price_usd_per_hour ?? null,
  };
}

/** JSON has no infinity: what is not limited is null. */
function changeJson({ limit, now, needed, proved, text }: SmallestChange__Output): object {
  const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);
  return { limit, now: finite(now), needed: finite(needed), proved, text };
}
