import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { BadRequestSchema } from "../src/gen/google/rpc/error_details_pb.js";
import { Code, connect, MemoryService, MunimentError, PassageService } from "../src/index.js";
import { Fake, failureOf, status } from "./fake.js";

/** The error that a read and an import fail with if the server answers each time with the next of `failures`. */
async function failed(how: "read" | "import", ...failures: Error[]): Promise<MunimentError> {
  const fail = () => Promise.reject(failures.shift());
  await using fake = await Fake.start((router) =>
    router.service(MemoryService, { getMemory: fail }).service(PassageService, { importPassages: fail }),
  );
  const session = connect({ address: fake.address, token: "t" });
  const call = how === "read" ? session.memories.getMemory({}) : session.passages.importPassages(none());
  const error = await failureOf(call);
  assert.ok(error instanceof MunimentError);
  return error;
}

async function* none() {}

function refusal(code: Code, reason: string, requestId: string) {
  return status(code, reason, undefined, {}, { "request-id": requestId });
}

test("an error has the request id and prints it", async () => {
  const error = await failed("read", refusal(Code.NotFound, "MEMORY_NOT_FOUND", "r1"));

  assert.equal(error.requestId, "r1");
  assert.equal(error.message, "MEMORY_NOT_FOUND: a text (request r1)");
});

test("it is printed behind the rules that are broken", async () => {
  const value = { fieldViolations: [{ field: "key", description: "is too short" }] };
  const detail = { desc: BadRequestSchema, value };

  const error = await failed("read", status(Code.InvalidArgument, "FIELD_INVALID", detail, {}, { "request-id": "r1" }));

  assert.equal(error.message, "FIELD_INVALID: a text (key: is too short) (request r1)");
});

test("after retries it is the id of the last attempt", async () => {
  const error = await failed(
    "read",
    refusal(Code.Unavailable, "UNAVAILABLE", "r1"),
    refusal(Code.NotFound, "MEMORY_NOT_FOUND", "r2"),
  );

  assert.equal(error.requestId, "r2");
});

test("an import that fails has one too", async () => {
  assert.equal((await failed("import", refusal(Code.Aborted, "TAINT_CHANGED", "r1"))).requestId, "r1");
});

test("without an answer there is none", async () => {
  const session = connect({ address: "127.0.0.1:1", token: "t", retries: false });

  const error = await failureOf(session.memories.getMemory({}));

  assert.ok(error instanceof MunimentError);
  assert.equal(error.requestId, "");
  assert.ok(!error.message.includes("(request"));
});

test("a fault is known by one id, which a server of version 0.1.0 sends as the incident alone", async () => {
  for (const trailers of [{ "request-id": "r1" }, undefined]) {
    const error = await failed("read", status(Code.Internal, "INTERNAL", undefined, { incident: "r1" }, trailers));

    assert.deepEqual([error.requestId, error.incident], ["r1", "r1"]);
    assert.equal(error.message, "INTERNAL: a text (request r1)");
    assert.equal(inspect(error).split("r1").length, 2);
  }
});
