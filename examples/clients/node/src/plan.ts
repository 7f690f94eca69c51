/**
 * Plans a job: node dist/plan.js JOB.yaml [--daemon HOST:PORT] [--tls-dir DIR] [--model NAME] [--json]
 *
 * Exit 0 planned, 1 failed, 2 bad usage or bad input, 3 no feasible fleet.
 */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import type { CreatePlanRequest } from "./generated/spotwright/v1/CreatePlanRequest";
import type { CreatePlanResponse__Output } from "./generated/spotwright/v1/CreatePlanResponse";
import { connect } from "./connection";
import type { Services } from "./connection";
import { report, UsageError } from "./errors";
import { infeasibleJson, planJson } from "./plan-json";
import { printInfeasible, printPlan } from "./plan-view";

const CALL_DEADLINE_MS = 120_000; // the daemon searches for 30 s unless asked otherwise
const EXIT_NO_FLEET = 3;
const USAGE = "usage: plan.js JOB.yaml [--daemon HOST:PORT] [--tls-dir DIR] [--model NAME] [--json]";

interface Flags {
  job: string;
  daemon: string;
  tlsDir: string | undefined;
  model: string;
  json: boolean;
}

function readFlags(): Flags {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        daemon: { type: "string", default: "127.0.0.1:7443" },
        "tls-dir": { type: "string" },
        model: { type: "string", default: "" },
        json: { type: "boolean", default: false },
      },
    });
    const [job, ...more] = positionals;
    if (job === undefined || more.length > 0) throw new Error("one job file is needed");
    const { daemon, model, json } = values;
    return { job, daemon, tlsDir: values["tls-dir"], model, json };
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${USAGE}`);
  }
}

function readJob(path: string): string {
  try {
    return readFileSync(path, "utf-8");
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message}`);
  }
}

/** Asks for a plan; the request has a name, so that it can be sent again without planning twice. */
function createPlan(
  { planner }: Services,
  request: CreatePlanRequest,
): Promise<CreatePlanResponse__Output> {
  return new Promise((resolve, reject) => {
    const deadline = Date.now() + CALL_DEADLINE_MS;
    planner.CreatePlan(request, { deadline }, (error, response) => {
      if (error) reject(error);
      else if (response === undefined) reject(new Error("the daemon answered with nothing"));
      else resolve(response);
    });
  });
}

async function main(): Promise<number> {
  const flags = readFlags();
  const job = { text: readJob(flags.job), name: flags.job, model: flags.model };
  const services = connect(flags.daemon, flags.tlsDir);
  try {
    const answer = await createPlan(services, { request_id: randomUUID(), job });
    if (answer.plan) {
      if (flags.json) console.log(JSON.stringify(planJson(answer.plan), null, 2));
      else printPlan(answer.plan);
      return 0;
    }
    if (!answer.infeasible) throw new Error("the daemon is newer than this client: neither a plan nor why there is none");
    if (flags.json) console.log(JSON.stringify(infeasibleJson(answer.infeasible), null, 2));
    printInfeasible(answer.infeasible);
    return EXIT_NO_FLEET;
  } finally {
    services.planner.close();
  }
}

main().then(
  (code) => (process.exitCode = code),
  (error: unknown) => (process.exitCode = report(error)),
);
