/**
 * Prints agents whenever their figures change, and the events of a job:
 * node dist/watch.js [--job JOB_ID] [--daemon HOST:PORT] [--tls-dir DIR]
 *
 * Ends when the job has ended, when the daemon goes away, or at Ctrl-C.
 */

import * as grpc from "@grpc/grpc-js";
import { parseArgs } from "node:util";

import type { Agent__Output } from "./generated/spotwright/v1/Agent";
import type { WatchJobResponse__Output } from "./generated/spotwright/v1/WatchJobResponse";
import { connect } from "./connection";
import { report, UsageError } from "./errors";

const USAGE = "usage: watch.js [--job JOB_ID] [--daemon HOST:PORT] [--tls-dir DIR]";

function readFlags(): { daemon: string; tlsDir: string | undefined; job: string } {
  try {
    const { values } = parseArgs({
      options: {
        daemon: { type: "string", default: "127.0.0.1:7443" },
        "tls-dir": { type: "string" },
        job: { type: "string", default: "" },
      },
    });
    return { daemon: values.daemon, tlsDir: values["tls-dir"], job: values.job };
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${USAGE}`);
  }
}

/** Shows what comes until the stream ends; ending it ourselves is no error. */
function shown<T>(stream: grpc.ClientReadableStream<T>, show: (value: T) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.on("data", show);
    stream.on("end", resolve);
    stream.on("error", (error: grpc.ServiceError) => {
      if (error.code === grpc.status.CANCELLED) resolve();
      else reject(error);
    });
  });
}

function agentLine(agent: Agent__Output): string {
  const gpus = agent.latest_sample?.gpus ?? [];
  const busy = gpus.flatMap((gpu) => gpu.utilization_fraction ?? []);
  const parts = [
    `agent ${agent.facts?.agent_id}`,
    agent.connected ? "connected" : "not connected",
    [agent.facts?.instance_type, agent.facts?.zone].filter(Boolean).join(" "),
    busy.length > 0 ? `GPU ${((100 * sum(busy)) / busy.length).toFixed(0)} %` : "",
    agent.latest_step ? `step ${agent.latest_step.step_s.toFixed(3)} s` : "",
    agent.notice ? `NOTICE ${agent.notice.detail}` : "",
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function showJob({ job, event }: WatchJobResponse__Output): void {
  if (job) {
    const reached = job.progress_fraction;
    const percent = reached === undefined ? "" : `, ${(100 * reached).toFixed(1)} %`;
    console.log(`job ${job.job_id}, ${job.state.replace("JOB_STATE_", "").toLowerCase()}${percent}`);
  }
  if (event) console.log(`event ${event.sequence} ${event.kind}: ${event.text}`);
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

async function main(): Promise<number> {
  const flags = readFlags();
  const { jobs, telemetry } = connect(flags.daemon, flags.tlsDir);
  const agents = telemetry.WatchAgents({ job_id: flags.job });
  process.once("SIGINT", () => agents.cancel());
  try {
    // All agents come first: a job that has ended already must not cut that off.
    const begun = new Promise((resolve) => agents.once("data", resolve));
    const watching = shown(agents, (update) => update.agents.forEach((agent) => console.log(agentLine(agent))));
    if (flags.job === "") {
      await watching;
    } else {
      const events = jobs.WatchJob({ job_id: flags.job });
      process.once("SIGINT", () => events.cancel());
      const ended = shown(events, showJob).then(() => Promise.race([begun, watching]));
      await Promise.all([ended.finally(() => agents.cancel()), watching]);
    }
    return 0;
  } finally {
    jobs.close();
    telemetry.close();
  }
}

main().then(
  (code) => (process.exitCode = code),
  (error: unknown) => (process.exitCode = report(error)),
);
