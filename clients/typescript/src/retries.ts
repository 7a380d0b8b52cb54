// Which calls may be sent again, and when.

import { setTimeout as sleep } from "node:timers/promises";
import { type DescMethod, getOption, isMessage, type Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { MunimentError, TlsMismatch } from "./errors.js";
import { SaveMemoriesRequestSchema } from "./gen/muniment/v1/memory_service_pb.js";
import { AddNoteRequestSchema, EditNotesRequestSchema } from "./gen/muniment/v1/note_service_pb.js";
import { StorePassageRequestSchema } from "./gen/muniment/v1/passage_service_pb.js";
import { policy } from "./gen/muniment/v1/policy_pb.js";

const PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Whether a request may be sent again when nobody knows what became of it: as the contract says of its method.
 *
 * What is added under an id of the caller's is added once. With an etag never: if the first attempt did arrive, the
 * second is stale.
 */
export function mayRepeat(method: DescMethod, request: Message): boolean {
  if (!getOption(method, policy).mayBeRepeated || ("etag" in request && request.etag !== "")) {
    return false;
  }
  if (isMessage(request, AddNoteRequestSchema)) {
    return request.noteId !== "";
  }
  if (isMessage(request, SaveMemoriesRequestSchema)) {
    return request.memories.every(({ etag }) => etag === "");
  }
  if (isMessage(request, StorePassageRequestSchema)) {
    return request.passageId !== "";
  }
  if (isMessage(request, EditNotesRequestSchema)) {
    // A note whose content is there already is not added, but would be the second time if a later edit changes that one.
    return request.validateOnly || request.edits.every(({ edit }) => edit.case === "add" && edit.value.noteId !== "");
  }
  return true;
}

/** Whether the same call may succeed a little later: after UNAVAILABLE, or overload that names a time. */
export function passes(error: MunimentError): boolean {
  return error.code === Code.Unavailable
    ? !(error instanceof TlsMismatch)
    : error.code === Code.ResourceExhausted && error.retryAfterMs !== undefined;
}

/**
 * Milliseconds to wait after so many attempts: longer each time, less up to half by chance, so that clients do not
 * come back all at once. A server that names a time is given that time on top.
 *
 * The longest pause bounds what the clients of a server that is away or overloaded send: at most one attempt per call
 * in one to two seconds.
 */
export function pauseMs(attempt: number, error: MunimentError): number {
  const longest = Math.min(PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
  return longest * (0.5 + Math.random() / 2) + (error.retryAfterMs ?? 0);
}

/** Wait, unless the caller aborts the call. */
export async function pauseFor(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(milliseconds, undefined, { signal });
  } catch (aborted) {
    throw new MunimentError(Code.Canceled, "the call was aborted between two attempts", [], { cause: aborted });
  }
}
