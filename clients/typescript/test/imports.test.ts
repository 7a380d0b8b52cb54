import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";
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
  for (let waits = 0; !ended && waits < 1_000; waits += 1) {
    await sleep(10);
  }
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

const MARKED = [{ content: "a", passageId: "5d0c4a0e-4f52-4d7b-9a53-6c2f6f6f2d10" }];

/** A server that is overloaded at first, so many times, and the contents that it was sent. */
async function overloaded(times: number): Promise<{ fake: Fake; sent: string[] }> {
  const sent: string[] = [];
  const fake = await Fake.start((router) =>
    router.service(PassageService, {
      importPassages: async (requests) => {
        for await (const { passage } of requests) {
          sent.push(passage?.content ?? "");
        }
        if (sent.length <= times) {
          const value = { retryDelay: { nanos: 1_000_000 } };
          throw status(Code.ResourceExhausted, "OVERLOADED", { desc: RetryInfoSchema, value });
        }
        return { storedCount: 1 };
      },
    }),
  );
  return { fake, sent };
}

test("an import of passages with ids is made again after overload", async () => {
  const { fake, sent } = await overloaded(2);
  await using _ = fake;
  const session = connect({ address: fake.address, token: "t" });
  assert.equal((await session.importAll(MARKED)).storedCount, 1);
  assert.deepEqual(sent, ["a", "a", "a"]);
});

test("an import of passages without ids, or of a client without retries, is made once", async () => {
  const { fake, sent } = await overloaded(2);
  await using _ = fake;
  const session = connect({ address: fake.address, token: "t" });
  const once = connect({ address: fake.address, token: "t", retries: false });
  for (const call of [session.importAll([{ content: "a" }]), once.importAll(MARKED)]) {
    const error = await failureOf(call);
    assert.ok(error instanceof MunimentError && error.reason === "OVERLOADED");
  }
  assert.equal(sent.length, 2);
});
