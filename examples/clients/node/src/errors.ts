/** What went wrong, as the daemon tells it: its own words, and a reason that scripts can test. */

import * as grpc from "@grpc/grpc-js";
import * as protoLoader from "@grpc/proto-loader";
import { join } from "node:path";

import type { ProtoGrpcType } from "./generated/error-details";

const EXIT_FAILED = 1;
export const EXIT_BAD_INPUT = 2;

/** The command line cannot be understood. */
export class UsageError extends Error {}

interface Told {
  reason: string;
  retryAfterS?: number;
}

const google = (
  grpc.loadPackageDefinition(
    protoLoader.loadSync(join(__dirname, "..", "error-details.proto"), {
      keepCase: true,
      longs: Number,
      defaults: true,
    }),
  ) as unknown as ProtoGrpcType
).google.rpc;

/** Prints what went wrong on stderr and returns the exit code that stands for it. */
export function report(error: unknown): number {
  if (error instanceof UsageError) {
    console.error(error.message);
    return EXIT_BAD_INPUT;
  }
  if (!isServiceError(error)) {
    console.error(error instanceof Error ? error.message : String(error));
    return EXIT_FAILED;
  }
  const told = detailsOf(error);
  const code = grpc.status[error.code];
  console.error(`error: ${error.details}`);
  console.error(`status ${code}${told.reason ? `, reason ${told.reason}` : ""}`);
  if (told.retryAfterS !== undefined) console.error(`try again in ${told.retryAfterS} s`);
  return error.code === grpc.status.INVALID_ARGUMENT ? EXIT_BAD_INPUT : EXIT_FAILED;
}

function isServiceError(error: unknown): error is grpc.ServiceError {
  return error instanceof Error && "code" in error && "metadata" in error;
}

function detailsOf(error: grpc.ServiceError): Told {
  const told: Told = { reason: "" };
  const trailer = error.metadata.get("grpc-status-details-bin")[0];
  if (!(trailer instanceof Buffer)) return told; // said by the way there, not by the daemon
  for (const detail of google.Status.deserialize(trailer).details) {
    if (detail.type_url.endsWith("/google.rpc.ErrorInfo")) {
      told.reason = google.ErrorInfo.deserialize(detail.value).reason;
    } else if (detail.type_url.endsWith("/google.rpc.RetryInfo")) {
      const delay = google.RetryInfo.deserialize(detail.value).retry_delay;
      told.retryAfterS = (delay?.seconds ?? 0) + (delay?.nanos ?? 0) / 1e9;
    }
  }
  return told;
}
