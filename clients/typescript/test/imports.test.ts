import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, connect, ImportProgressSchema, MunimentError, PassageService } from "../src/index.js";
import { Fake, failureOf, status } from "./fake.js";

/** A server that counts passages and refuses the one with content "bad". */
function served(): Promise<Fake> {
  return Fake.start((router) =>
    router.service(PassageService, {
      importPassages: async (requests) => {
        let storedCount = 0;
        for await (const { passage } of requests) {
          if (passage?.content === "bad") {
            throw status(Code.InvalidArgument, "FIELD_INVALID", { desc: ImportProgressSchema, value: { storedCount } });
          }
          storedCount += 1;
        }
        return { storedCount };
      },
    }),
  );
}

async function* passages(...contents: string[]) {
  for (const content of contents) {
    yield { passage: { content } };
  }
}

test("a stream of passages is stored", async () => {
  await using fake = await served();

  const session = connect({ address: fake.address, token: "t", timeoutMs: 10_000.5 });

  const response = await session.passages.importPassages(passages("a", "b"));

  assert.equal(response.storedCount, 2);
});

test("an error in mid-stream says how far it came, and ends the caller's stream", async () => {
  await using fake = await served();
  let ended = false;
  async function* endless() {
    try {
      yield* passages("a", "b", "bad");
      for (;;) {
        await sleep(1);
        yield* passages("c");
      }
    } finally {
      ended = true;
    }
  }

  const error = await failureOf(connect({ address: fake.address, token: "t" }).passages.importPassages(endless()));

  assert.ok(error instanceof MunimentError);
  assert.equal(error.reason, "FIELD_INVALID");
  assert.equal(error.progress?.storedCount, 2);
  await sleep(10);
  assert.ok(ended);
});

test("what the caller's stream throws reaches the caller", async () => {
  await using fake = await served();
  const mine = new Error("mine");
  async function* broken() {
    yield* passages("a");
    throw mine;
  }

  assert.equal(await failureOf(connect({ address: fake.address, token: "t" }).passages.importPassages(broken())), mine);
});

test("a stream that rests past the deadline ends there", async () => {
  await using fake = await served();
  async function* resting() {
    yield* passages("a");
    await sleep(200);
  }
  const session = connect({ address: fake.address, token: "t" });

  const error = await failureOf(session.passages.importPassages(resting(), { timeoutMs: 50 }));

  assert.ok(error instanceof MunimentError && error.code === Code.DeadlineExceeded);
});

test("an import is made once: what was read of the stream is gone", async () => {
  await using fake = await served();
  fake.refusals = 1;

  const error = await failureOf(connect({ address: fake.address, token: "t" }).passages.importPassages(passages("a")));

  assert.ok(error instanceof MunimentError && error.code === Code.Unavailable);
});
