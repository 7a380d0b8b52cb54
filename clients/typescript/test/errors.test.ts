import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";
import {
  BudgetExceededSchema,
  Classification,
  Code,
  ConversationTaintedSchema,
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
  assert.equal(error.status, "NOT_FOUND");
  assert.equal(error.reason, "MEMORY_NOT_FOUND");
  assert.equal(error.rawMessage, "a text");
  assert.equal(String(error), "MunimentError: MEMORY_NOT_FOUND: a text");
  assert.deepEqual(
    [error.violations, error.budget, error.taint, error.progress, error.retryAfterMs, error.incident],
    [[], undefined, undefined, undefined, undefined, ""],
  );
});

test("FIELD_INVALID names the fields", async () => {
  const value = { fieldViolations: [{ field: "key", description: "is too short" }] };

  const error = await received(status(Code.InvalidArgument, "FIELD_INVALID", { desc: BadRequestSchema, value }));

  assert.deepEqual(error.violations, [{ field: "key", description: "is too short" }]);
  assert.ok(!inspect(error.violations).includes("$typeName"));
  assert.equal(error.message, "FIELD_INVALID: a text (key: is too short)");
});

test("BUDGET_EXCEEDED says what takes the room, and does not print it", async () => {
  const entry = { noteId: "n1", lengthChars: 40, preview: "Prefers tea", classification: Classification.PUBLIC };
  const value = { overByChars: 3, wouldBeChars: 43, entries: [entry] };

  const error = await received(
    status(Code.FailedPrecondition, "BUDGET_EXCEEDED", { desc: BudgetExceededSchema, value }),
  );

  assert.equal(error.message, "BUDGET_EXCEEDED: a text (over by 3 characters: 43 of 40)");
  assert.equal(error.budget?.overByChars, 3);
  assert.equal(error.budget?.entries[0]?.preview, "Prefers tea");
  assert.equal(error.details.length, 2);
  assert.ok(!inspect(error, { depth: null }).includes("Prefers tea"));
  assert.ok(!JSON.stringify(error).includes("Prefers tea"));
});

test("CONVERSATION_TAINTED says how far", async () => {
  const detail = { desc: ConversationTaintedSchema, value: { taint: Classification.CONFIDENTIAL } };

  const error = await received(status(Code.FailedPrecondition, "CONVERSATION_TAINTED", detail));

  assert.equal(error.taint, Classification.CONFIDENTIAL);
});

test("other details are values too, and in the message", async () => {
  const progress = { desc: ImportProgressSchema, value: { storedCount: 2 } };
  const cut = await received(status(Code.Aborted, "TAINT_CHANGED", progress));
  assert.equal(cut.progress?.storedCount, 2);
  assert.equal(cut.message, "TAINT_CHANGED: a text (2 passages stored, 0 already there)");
  const retry = { desc: RetryInfoSchema, value: { retryDelay: { seconds: 1n, nanos: 500_000_000 } } };
  const away = await received(status(Code.Unavailable, "UNAVAILABLE", retry));
  assert.equal(away.retryAfterMs, 1500);
  assert.equal(away.message, "UNAVAILABLE: a text (retry after 1.5 s)");
  const full = await received(status(Code.ResourceExhausted, "QUOTA_EXCEEDED", undefined, { quota: "items" }));
  assert.equal(full.message, "QUOTA_EXCEEDED: a text (quota: items)");
  assert.equal((await received(status(Code.Internal, "INTERNAL", undefined, { incident: "i7" }))).incident, "i7");
});

test("every code has the name that gRPC gives it", () => {
  const codes = Object.values(Code).filter((each): each is Code => typeof each === "number");
  const names = codes.map((code) => new MunimentError(code, "").status.replaceAll("_", "").toLowerCase());
  assert.deepEqual(
    names,
    codes.map((code) => Code[code].toLowerCase().replace("canceled", "cancelled")),
  );
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

test("a reason that is newer than the client has its name, and a misspelled one does not compile", async () => {
  const newer = { desc: ErrorInfoSchema, value: { reason: "OF_TOMORROW", domain: "muniment.v1" } };
  const error = await received(new ConnectError("no", Code.Aborted, undefined, [newer]));

  // @ts-expect-error: the contract has no such reason
  assert.ok(error.reason !== "ETAG_STAL");
  assert.deepEqual([error.reason, error.reasonName, error.message], ["", "OF_TOMORROW", "OF_TOMORROW: no"]);
});
