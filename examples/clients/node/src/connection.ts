/** The way to a daemon: flags, certificates, token, and the typed services. */

import * as grpc from "@grpc/grpc-js";
import * as protoLoader from "@grpc/proto-loader";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { ProtoGrpcType as JobTypes } from "./generated/job";
import type { ProtoGrpcType as PlannerTypes } from "./generated/planner";
import type { JobServiceClient } from "./generated/spotwright/v1/JobService";
import type { PlannerServiceClient } from "./generated/spotwright/v1/PlannerService";
import type { TelemetryServiceClient } from "./generated/spotwright/v1/TelemetryService";
import type { ProtoGrpcType as TelemetryTypes } from "./generated/telemetry";

const PROTOS = join(__dirname, "..", "..", "..", "..", "protos");
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024; // a plan with its frontier may be long

type Packages = PlannerTypes & JobTypes & TelemetryTypes;

export interface Services {
  planner: PlannerServiceClient;
  jobs: JobServiceClient;
  telemetry: TelemetryServiceClient;
}

/** Opens the services of the daemon at `address`; with a folder of certificates, over TLS. */
export function connect(address: string, tlsDir: string | undefined): Services {
  const definition = protoLoader.loadSync(
    ["planner", "job", "telemetry"].map((name) => `spotwright/v1/${name}.proto`),
    {
      includeDirs: [PROTOS],
      keepCase: true,
      longs: Number,
      enums: String,
      defaults: true,
      oneofs: true,
    },
  );
  const v1 = (grpc.loadPackageDefinition(definition) as unknown as Packages).spotwright.v1;
  const credentials = tlsDir === undefined ? grpc.credentials.createInsecure() : overTls(tlsDir);
  const options = { "grpc.max_receive_message_length": MAX_MESSAGE_BYTES };
  return {
    planner: new v1.PlannerService(address, credentials, options),
    jobs: new v1.JobService(address, credentials, options),
    telemetry: new v1.TelemetryService(address, credentials, options),
  };
}

/** Trusts the daemon's CA, shows our own certificate, and a person's token where there is one. */
function overTls(folder: string): grpc.ChannelCredentials {
  const read = (name: string): Buffer => readFileSync(join(folder, name));
  const channel = grpc.credentials.createSsl(read("ca.crt"), read("client.key"), read("client.crt"));
  const token = process.env["SPOTWRIGHT_TOKEN"];
  if (!token) return channel;
  const bearer = grpc.credentials.createFromMetadataGenerator((_, done) => {
    const metadata = new grpc.Metadata();
    metadata.set("authorization", `Bearer ${token}`);
    done(null, metadata);
  });
  return grpc.credentials.combineChannelCredentials(channel, bearer);
}
