// Plays scenarios of tests/clients/conformance through this client: `node dist/conformance/runner.js FILE`.
//
// MUNIMENT_ADDRESS and MUNIMENT_HOST_KEY say where and as which host, MUNIMENT_TLS_CA that it is over TLS. Each step
// becomes one line of JSON on standard output. Exit status 2: the file is broken, or there is no server.

import { readFileSync, readSync } from "node:fs";
import {
  create,
  createRegistry,
  type DescFile,
  type DescMethod,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import { type Any, AnySchema, anyIs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { Calls, type Renewal } from "../src/calls.js";
import { type Connection, openConnection } from "../src/connection.js";
import { errorOf, MunimentError } from "../src/errors.js";
import { ErrorInfoSchema, file_google_rpc_error_details } from "../src/gen/google/rpc/error_details_pb.js";
import * as contract from "../src/index.js";
import { Renewals } from "../src/renewals.js";

interface Step {
  readonly as: string;
  readonly call: string;
  readonly request?: JsonValue;
  readonly requests?: readonly JsonValue[];
  readonly deadline_ms?: number;
  readonly may_be_lost?: boolean;
  readonly wait?: boolean;
  readonly save?: Readonly<Record<string, string>>;
}

interface Scenario {
  readonly name: string;
  readonly steps: readonly Step[];
}

type Variables = Map<string, JsonValue>;

const DEFAULTS = { timeoutMs: 10_000, retries: true };

const FILES = Object.values(contract).filter((each): each is DescFile => typeof each === "object" && "proto" in each);
const REGISTRY: Registry = createRegistry(file_google_rpc_error_details, ...FILES);

class Unresolved extends Error {}

async function main(): Promise<void> {
  const { scenarios } = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as { scenarios: readonly Scenario[] };
  const ca = process.env.MUNIMENT_TLS_CA;
  const connection = openConnection(process.env.MUNIMENT_ADDRESS ?? "", ca ? { ca: readFileSync(ca) } : false);
  for (const scenario of scenarios) {
    const variables: Variables = new Map();
    const callers = new Callers(connection);
    for (const [index, step] of scenario.steps.entries()) {
      if (step.wait) {
        readSync(0, Buffer.alloc(1)); // one byte, since a reader would take more than its line
      }
      const outcome = await play(step, variables, callers);
      process.stdout.write(`${JSON.stringify(sorted({ ...outcome, scenario: scenario.name, step: index }))}\n`);
    }
  }
}

async function play(unresolved: Step, variables: Variables, callers: Callers): Promise<JsonObject> {
  try {
    const step = resolved(unresolved, variables);
    const method = methodOf(step.call);
    const response = toJson(method.output, await call(method, step, await callers.as(step.as)));
    for (const [name, path] of Object.entries(step.save ?? {})) {
      save(variables, name, response, path);
    }
    return { status: "OK", response };
  } catch (failure) {
    return outcomeOf(failure, unresolved.may_be_lost);
  }
}

/** The step with all `${name}` replaced. */
function resolved(step: Step, variables: Variables): Step {
  return JSON.parse(JSON.stringify(step), (_, value: unknown) =>
    typeof value === "string" ? value.replace(/\$\{([^}]+)\}/g, (_, name: string) => text(variables.get(name))) : value,
  ) as Step;
}

function text(value: JsonValue | undefined): string {
  if (value === undefined) {
    throw new Unresolved();
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

function methodOf(name: string): DescMethod {
  const [service = "", method = ""] = name.split(".");
  const found = REGISTRY.getService(`muniment.v1.${service}`)?.methods.find((each) => each.name === method);
  if (!found) {
    throw new Error(`the contract has no ${name}`);
  }
  return found;
}

/** Those who make the calls of a scenario. */
class Callers {
  readonly #connection: Connection;
  readonly #conversations = new Map<string, Promise<Transport>>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async as(principal: string): Promise<Transport> {
    if (principal === "none") {
      return this.#connection.transport; // the client refuses to be without a credential
    }
    if (principal === "host") {
      return this.#with(process.env.MUNIMENT_HOST_KEY ?? "");
    }
    const [, agentId, conversationId] = principal.split(" ");
    return agentId && conversationId
      ? this.#conversation(principal, { agentId, conversationId })
      : this.#with(principal);
  }

  /** Opened by the first step that names it. */
  #conversation(principal: string, opening: { agentId: string; conversationId: string }): Promise<Transport> {
    const opened = this.#conversations.get(principal) ?? this.#opened(opening);
    this.#conversations.set(principal, opened);
    return opened;
  }

  async #opened(opening: { agentId: string; conversationId: string }): Promise<Transport> {
    const host = createClient(contract.SessionService, await this.as("host"));
    const begunMs = performance.now();
    const { token, session = create(contract.SessionSchema) } = await host.openSession(opening);
    return this.#with(token, new Renewals(host, session, begunMs));
  }

  #with(credential: string, renewal?: Renewal): Transport {
    return new Calls(this.#connection, credential, DEFAULTS, renewal);
  }
}

function call(method: DescMethod, step: Step, transport: Transport): Promise<Message> {
  const rpc: (input: unknown, options: CallOptions) => Promise<Message> = Reflect.get(
    createClient(method.parent, transport),
    method.localName,
  );
  const messages = (step.requests ?? [step.request ?? {}]).map((json) => fromJson(method.input, json));
  const input = method.methodKind === "client_streaming" ? streamOf(messages) : messages[0];
  return rpc(input, { timeoutMs: step.deadline_ms ?? DEFAULTS.timeoutMs });
}

async function* streamOf<T>(messages: readonly T[]): AsyncGenerator<T> {
  yield* messages;
}

/** Keep the value at a dotted path such as `memories.0.key`. Nothing there: the variable stays unknown. */
function save(variables: Variables, name: string, response: JsonValue, path: string): void {
  const value = path.split(".").reduce<unknown>((inner, key) => (inner as JsonObject | undefined)?.[key], response);
  if (value !== undefined) {
    variables.set(name, value as JsonValue);
  }
}

function outcomeOf(failure: unknown, mayBeLost = false): JsonObject {
  if (failure instanceof Unresolved) {
    return { status: "UNRESOLVED" };
  }
  const error = failure instanceof ConnectError ? errorOf(failure) : failure;
  const lost = error instanceof MunimentError && error.code === Code.Unavailable && error.reasonName === "";
  if (!(error instanceof MunimentError) || (lost && !mayBeLost)) {
    throw error;
  }
  const details = error.details.filter((detail) => !anyIs(detail, ErrorInfoSchema)).map(detailToJson);
  const { status, reasonName: reason, rawMessage, requestId } = error;
  return { status, reason, message: rawMessage, details, request_id: requestId };
}

function detailToJson(detail: Any): JsonValue {
  return toJson(AnySchema, detail, { registry: REGISTRY });
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key] ?? null)]),
  );
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 2;
});
