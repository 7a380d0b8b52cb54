// Calls that fail: one class, whose values say how.

import { create } from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectError } from "@connectrpc/connect";
import { facts, find, retryAfterMs, type Violation, violationsIn } from "./details.js";
import { ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import type { Classification } from "./gen/muniment/v1/classification_pb.js";
import { ErrorReason } from "./gen/muniment/v1/error_pb.js";
import { type BudgetExceeded, BudgetExceededSchema } from "./gen/muniment/v1/note_pb.js";
import { type ImportProgress, ImportProgressSchema } from "./gen/muniment/v1/passage_pb.js";
import { ConversationTaintedSchema } from "./gen/muniment/v1/session_pb.js";
import type { Explanation } from "./mistakes.js";
import { type Status, statusName } from "./statuses.js";

const DOMAIN = "muniment.v1";

/** The trailer with the id of the call. */
const REQUEST_ID = "request-id";

/** The reasons of the contract, such as `"ETAG_STALE"`. A misspelled one does not compile. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED"> | "";

/** What is known of an error besides its status. */
export interface MunimentErrorOptions extends ErrorOptions {
  readonly requestId?: string;
}

/**
 * A call failed.
 *
 * What may hold content (`details`, `budget`) is no property of its own, so that a printed error does not show it.
 */
export class MunimentError extends Error {
  override readonly name = "MunimentError";
  /** The status, as a number. */
  readonly code: Code;
  /** The status by its name. */
  readonly status: Status;
  /** Why, by which to act. Empty when the answer does not come from Muniment itself, and for a newer reason. */
  readonly reason: Reason;
  /** Why, as the server names it: also a reason that is newer than this client. */
  readonly reasonName: string;
  /** The text of the status alone. It is for people and may change. */
  readonly rawMessage: string;

  readonly #details: readonly Any[];
  readonly #incident: string;
  readonly #requestId: string;

  constructor(code: Code, rawMessage: string, details: readonly Any[] = [], options?: MunimentErrorOptions) {
    const info = find(details, ErrorInfoSchema);
    const reasonName = info?.domain === DOMAIN ? info.reason : "";
    const incident = info?.metadata.incident ?? "";
    const requestId = options?.requestId ?? incident; // a server of version 0.1.0 names faults alone
    const status = statusName(code);
    const behind = [facts(details), requestId && `request ${requestId}`].filter(Boolean).map((text) => ` (${text})`);
    super(`${reasonName || status}: ${rawMessage}${behind.join("")}`, options);
    this.code = code;
    this.status = status;
    this.reason = isKnown(reasonName) ? reasonName : "";
    this.reasonName = reasonName;
    this.rawMessage = rawMessage;
    this.#details = details;
    this.#incident = incident;
    this.#requestId = requestId;
  }

  /** All details of the status, packed, in its order. */
  get details(): readonly Any[] {
    return this.#details;
  }

  /** `FIELD_INVALID`: the fields of the request that break rules, each with the rule. */
  get violations(): readonly Violation[] {
    return violationsIn(this.#details);
  }

  /** `BUDGET_EXCEEDED`: by how much the notes would be over their tier's budget, and what takes the room. */
  get budget(): BudgetExceeded | undefined {
    return find(this.#details, BudgetExceededSchema);
  }

  /** `CONVERSATION_TAINTED`: the taint of the conversation. */
  get taint(): Classification | undefined {
    return find(this.#details, ConversationTaintedSchema)?.taint;
  }

  /** How far `importPassages` came: these passages, counted from the first, are stored. */
  get progress(): ImportProgress | undefined {
    return find(this.#details, ImportProgressSchema);
  }

  /** Milliseconds after which the server asks to be tried again. Undefined: it does not say. */
  get retryAfterMs(): number | undefined {
    return retryAfterMs(this.#details);
  }

  /** Identifies the call in the server's log; after retries, the last attempt. Empty: no server answered. */
  get requestId(): string {
    return this.#requestId;
  }

  /** `INTERNAL`: the request id, as the status itself has it. Empty: the server did not say. */
  get incident(): string {
    return this.#incident;
  }
}

/** TLS is set up differently at the server. A call that fails with this is not retried. */
export class TlsMismatch extends MunimentError {}

function isKnown(name: string): name is Exclude<Reason, ""> {
  return name in ErrorReason && name !== "UNSPECIFIED";
}

/** The error of a failed call. An explanation says why it found no server. */
export function errorOf(failure: ConnectError, explanation?: Explanation): MunimentError {
  const code =
    explanation !== undefined || isConnectionLost(failure) || isBrokenOff(failure) ? Code.Unavailable : failure.code;
  const details = failure.details.map((detail) =>
    create(AnySchema, "desc" in detail ? {} : { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value }),
  );
  const requestId = failure.metadata.get(REQUEST_ID);
  const Kind = explanation?.lasts ? TlsMismatch : MunimentError;
  return new Kind(code, explanation?.text ?? failure.rawMessage, details, {
    ...(failure.cause ? { cause: failure.cause } : {}),
    ...(requestId ? { requestId } : {}),
  });
}

/**
 * Whether the server never began the call: no connection could be made, or it closed the connection before it looked
 * at the call, as it does with connections of an age.
 */
export function neverBegan(failure: ConnectError): boolean {
  return !isAnswered(failure) && (isNotConnected(failure.cause) || failure.rawMessage.includes("REFUSED_STREAM"));
}

/** Node names the system call that failed. Where it tried several addresses, there is an error for each. */
function isNotConnected(cause: unknown): boolean {
  const errors: unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return errors.every(
    (error) =>
      error instanceof Error && "syscall" in error && (error.syscall === "connect" || error.syscall === "getaddrinfo"),
  );
}

/** gRPC's rule is UNAVAILABLE. Connect has one of three codes, by the way in which the connection broke. */
export function isConnectionLost(failure: ConnectError): boolean {
  if (isAnswered(failure)) {
    return false;
  }
  switch (failure.code) {
    case Code.Aborted:
      return true;
    case Code.Canceled: // by the caller, or by nobody
      return failure.rawMessage.startsWith("http/2 stream closed");
    case Code.Internal:
      return failure.cause instanceof Error && "code" in failure.cause;
    default:
      return false;
  }
}

/** Whether the server canceled the call, as it does when it stops. What the caller cancels has no answer. */
function isBrokenOff(failure: ConnectError): boolean {
  return isAnswered(failure) && failure.code === Code.Canceled;
}

function isAnswered(failure: ConnectError): boolean {
  return failure.metadata.has("grpc-status");
}
