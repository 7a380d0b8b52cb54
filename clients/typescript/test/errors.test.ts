import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";
import {
  BudgetExceededSchema,
  Classification,
  Code,
  connect,
  ImportProgressSchema,
  MemoryService,
  MunimentError,
} from "../src/index.js";
import { Fake, failureOf, status } from "./fake.js";

/** What a client makes of `failure`. */
async function received(failure: ConnectError): Promise<MunimentError> {
  await using fake = await Fake.start((router) =>
    router.service(MemoryService, { getMemory: () => Promise.reject(failure) }),
  );
  const session = connect({ address: fake.address, token: "t", retries: false });
  const error = await failureOf(session.memories.getMemory({}));
  assert.ok(error instanceof MunimentError);
  return error;
}

test("an error has code, reason and text", async () => {
  const error = await received(status(Code.NotFound, "MEMORY_NOT_FOUND"));

  assert.equal(error.code, Code.NotFound);
  assert.equal(error.reason, "MEMORY_NOT_FOUND");
  assert.equal(error.rawMessage, "a text");
  assert.equal(String(error), "MunimentError: MEMORY_NOT_FOUND: a text");
  assert.deepEqual(
    [error.violations, error.budget, error.progress, error.retryAfterMs, error.incident],
    [[], undefined, undefined, undefined, ""],
  );
});

test("FIELD_INVALID names the fields", async () => {
  const value = { fieldViolations: [{ field: "key", description: "is too short" }] };

  const error = await received(status(Code.InvalidArgument, "FIELD_INVALID", { desc: BadRequestSchema, value }));

  assert.equal(error.violations[0]?.field, "key");
  assert.equal(error.violations[0]?.description, "is too short");
  assert.equal(error.message, "FIELD_INVALID: a text (key: is too short)");
});

test("BUDGET_EXCEEDED says what takes the room, and does not print it", async () => {
  const entry = { noteId: "n1", lengthChars: 40, preview: "Prefers tea", classification: Classification.PUBLIC };
  const value = { overByChars: 3, wouldBeChars: 43, entries: [entry] };

  const error = await received(
    status(Code.FailedPrecondition, "BUDGET_EXCEEDED", { desc: BudgetExceededSchema, value }),
  );

  assert.equal(error.budget?.overByChars, 3);
  assert.equal(error.budget?.entries[0]?.preview, "Prefers tea");
  assert.equal(error.details.length, 2);
  assert.ok(!inspect(error, { depth: null }).includes("Prefers tea"));
  assert.ok(!JSON.stringify(error).includes("Prefers tea"));
});

test("other details are values too", async () => {
  const progress = { desc: ImportProgressSchema, value: { storedCount: 2 } };
  assert.equal((await received(status(Code.Aborted, "TAINT_CHANGED", progress))).progress?.storedCount, 2);
  const retry = { desc: RetryInfoSchema, value: { retryDelay: { seconds: 1n, nanos: 500_000_000 } } };
  assert.equal((await received(status(Code.Unavailable, "UNAVAILABLE", retry))).retryAfterMs, 1500);
  assert.equal((await received(status(Code.Internal, "INTERNAL", undefined, { incident: "i7" }))).incident, "i7");
});

test("a status of somebody else has no reason of ours", async () => {
  const foreign = { desc: ErrorInfoSchema, value: { reason: "BUDGET_EXCEEDED", domain: "example.com" } };
  const error = await received(new ConnectError("HTTP 503", Code.Unavailable, undefined, [foreign]));

  assert.equal(error.reason, "");
  assert.equal(error.message, "UNAVAILABLE: HTTP 503");
});

test("a code that the server sends stays, whatever the same code of a lost connection means", async () => {
  for (const code of [Code.Aborted, Code.Internal]) {
    assert.equal((await received(status(code, "INTERNAL"))).code, code);
  }
});
