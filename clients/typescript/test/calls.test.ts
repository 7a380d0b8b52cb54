import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { HandlerContext } from "@connectrpc/connect";
import { RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";
import { Code, connect, MemoryService, MunimentError } from "../src/index.js";
import { Fake, failureOf, status } from "./fake.js";

const OVERLOADED = { desc: RetryInfoSchema, value: { retryDelay: { nanos: 200_000_000 } } };
const MINUTE = { desc: RetryInfoSchema, value: { retryDelay: { seconds: 60n } } };

/** A server whose memories answer by `answer`, and the calls that it gets. */
async function served(answer: (context: HandlerContext) => unknown = () => {}, path?: string) {
  const calls: string[] = [];
  const reply = (name: string) => async (_: unknown, context: HandlerContext) => {
    calls.push(name);
    await answer(context);
    return {};
  };
  const fake = await Fake.start(
    (router) =>
      router.service(MemoryService, {
        getMemory: reply("get"),
        saveMemory: reply("save"),
        deleteMemory: reply("delete"),
        saveMemories: reply("save many"),
        deleteMemories: reply("delete many"),
      }),
    path,
  );
  return { fake, calls, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

/** Throws `failure` the first time. */
function onceThrown(failure: unknown): () => void {
  let thrown = false;
  return () => {
    if (!thrown) {
      thrown = true;
      throw failure;
    }
  };
}

async function firstCallOf({ calls }: { calls: string[] }): Promise<void> {
  while (calls.length === 0) {
    await sleep(1);
  }
}

function codeOf(failure: unknown): Code | undefined {
  return failure instanceof MunimentError ? failure.code : undefined;
}

test("the credential goes as metadata, whatever headers the caller adds", async () => {
  const seen: (string | null)[] = [];
  await using server = await served(({ requestHeader }) => {
    seen.push(requestHeader.get("authorization"), requestHeader.get("x-request-id"));
  });

  const session = connect({ address: server.fake.address, token: "ms_1" });
  await session.memories.getMemory({ key: "k" }, { headers: { authorization: "Basic x", "x-request-id": "7" } });

  assert.deepEqual(seen, ["Bearer ms_1", "7"]);
});

test("half of a surrogate pair is refused, and not sent", async () => {
  await using server = await served();
  const session = connect({ address: server.fake.address, token: "t" });
  const half = "secret \ud83d";
  async function* stream() {
    yield { passage: { content: half } };
  }

  for (const call of [
    () => session.memories.getMemory({ key: half }),
    () => session.memories.saveMemory({ key: "k", content: "c", tags: ["a", half] }),
    () => session.memories.saveMemories({ memories: [{ key: "k", content: half }] }),
    () => session.passages.importPassages(stream()),
  ]) {
    const refused = await failureOf(call());
    assert.equal(codeOf(refused), Code.InvalidArgument);
    assert.match(String(refused), /half of a surrogate pair/);
    assert.doesNotMatch(String(refused), /secret/);
  }
  assert.deepEqual(server.calls, []);

  await session.memories.saveMemory({ key: "k", content: "\u{1f600}" });
  assert.deepEqual(server.calls, ["save"]);
});

test("a call has a deadline: ten seconds, the client's, or its own", async () => {
  const seen: number[] = [];
  await using server = await served((context) => {
    seen.push((context.timeoutMs() ?? 0) / 1000);
  });
  const address = server.fake.address;

  await connect({ address, token: "t" }).memories.getMemory({});
  await connect({ address, token: "t", timeoutMs: 60_000 }).memories.getMemory({});
  await connect({ address, token: "t" }).memories.getMemory({}, { timeoutMs: 5_000 });

  assert.equal(seen.length, 3);
  for (const [index, most] of [10, 60, 5].entries()) {
    const left = seen[index] ?? 0;
    assert.ok(most - 4 < left && left <= most, `${left} of ${most}`);
  }
});

test("a call ends at its deadline", async () => {
  await using server = await served(() => sleep(1_000));
  const session = connect({ address: server.fake.address, token: "t" });

  const failure = await failureOf(session.memories.getMemory({}, { timeoutMs: 50.5 }));

  assert.equal(codeOf(failure), Code.DeadlineExceeded);
});

test("a timeout that is none is refused before anything is sent", async () => {
  for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 86_400_001]) {
    assert.throws(() => connect({ address: "localhost:1", token: "t", timeoutMs }), RangeError);
    const session = connect({ address: "localhost:1", token: "t" });
    assert.ok((await failureOf(session.memories.getMemory({}, { timeoutMs }))) instanceof RangeError);
  }
});

test("a read that meets UNAVAILABLE, or is broken off by the server, is made again; a delete is not", async () => {
  for (const [method, expected] of [
    ["getMemory", ["get", "get"]],
    ["saveMemory", ["save", "save"]],
    ["deleteMemory", ["delete"]],
    ["saveMemories", ["save many", "save many"]],
    ["deleteMemories", ["delete many"]],
  ] as const) {
    for (const code of [Code.Unavailable, Code.Canceled]) {
      await using server = await served(onceThrown(status(code, "")));
      const session = connect({ address: server.fake.address, token: "t" });

      await session.memories[method]({}).catch((error) => assert.equal(error.code, Code.Unavailable));

      assert.deepEqual(server.calls, expected);
    }
  }
});

/** The deadline may cut off the last attempt, if hardly any time was left: then the call is made once more. */
test("a call is made until its deadline is near, or once without retries", async () => {
  for (const [retries, least, most] of [
    [undefined, 5, 10],
    [false, 1, 1],
  ] as const) {
    let code: Code | undefined;
    for (let calls = 0; calls === 0 || (code === Code.DeadlineExceeded && calls < 3); calls += 1) {
      await using server = await served(() => Promise.reject(status(Code.Unavailable, "UNAVAILABLE")));
      const session = connect({ address: server.fake.address, token: "t", retries, timeoutMs: 6_000 });

      code = codeOf(await failureOf(session.memories.getMemory({})));
      assert.ok(least <= server.calls.length && server.calls.length <= most, `${server.calls.length} calls`);
    }
    assert.equal(code, Code.Unavailable);
  }
});

test("any call waits for a server that is not there yet: nothing was sent", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "muniment-")), "socket");
  const call = connect({ address: `unix:${path}`, token: "t" }).memories.deleteMemory({});
  await sleep(300);

  await using server = await served(() => {}, path);
  await call;

  assert.deepEqual(server.calls, ["delete"]);
});

test("overload is waited for if the server names a time", async () => {
  for (const [detail, expected] of [
    [OVERLOADED, ["get", "get"]],
    [undefined, ["get"]],
  ] as const) {
    await using server = await served(onceThrown(status(Code.ResourceExhausted, "OVERLOADED", detail)));
    const session = connect({ address: server.fake.address, token: "t" });
    const begin = performance.now();

    const failed = await session.memories.getMemory({}).then(
      () => false,
      () => true,
    );

    assert.deepEqual(server.calls, expected);
    assert.equal(failed || performance.now() - begin >= 200, true);
  }
});

test("no attempt is made past the deadline", async () => {
  await using server = await served(() => Promise.reject(status(Code.ResourceExhausted, "OVERLOADED", MINUTE)));
  const session = connect({ address: server.fake.address, token: "t" });

  const failure = await failureOf(session.memories.getMemory({}, { timeoutMs: 30_000 }));

  assert.equal(codeOf(failure), Code.ResourceExhausted);
  assert.deepEqual(server.calls, ["get"]);
});

test("what was refused unseen is made again, whatever it is", async () => {
  await using server = await served();
  server.fake.refusals = 2;

  await connect({ address: server.fake.address, token: "t" }).memories.deleteMemory({});

  assert.deepEqual(server.calls, ["delete"]);
});

test("a lost connection is UNAVAILABLE, and made anew by the next attempt", async () => {
  for (const how of ["end", "reset"] as const) {
    const server = await served(async () => {
      if (server.calls.length === 1) {
        server.fake.cut(how);
        await sleep(50);
      }
    });
    await using _ = server;
    const session = connect({ address: server.fake.address, token: "t" });

    assert.equal(codeOf(await failureOf(session.memories.deleteMemory({}))), Code.Unavailable);
    server.calls.length = 0;
    await session.memories.getMemory({});

    assert.deepEqual(server.calls, ["get", "get"]);
  }
});

test("no server is UNAVAILABLE, and so is one without TLS where it is needed", async () => {
  await using server = await served();
  for (const options of [{ address: "127.0.0.1:1" }, { address: server.fake.address, tls: true }]) {
    const session = connect({ ...options, token: "t", retries: false });

    assert.equal(codeOf(await failureOf(session.memories.getMemory({}))), Code.Unavailable);
  }
});

test("a caller can abort a call, and a pause between two attempts", { timeout: 30_000 }, async () => {
  await using slow = await served(() => sleep(1_000));
  await using busy = await served(() => Promise.reject(status(Code.ResourceExhausted, "OVERLOADED", MINUTE)));
  for (const server of [slow, busy]) {
    const session = connect({ address: server.fake.address, token: "t" });
    const caller = new AbortController();
    const call = failureOf(session.memories.getMemory({}, { signal: caller.signal, timeoutMs: 120_000 }));
    await firstCallOf(server);
    await sleep(20); // The busy server's answer is there: the pause has begun.

    caller.abort();

    assert.equal(codeOf(await call), Code.Canceled);
    assert.deepEqual(server.calls, ["get"]);
  }
});

test("disconnecting ends calls that are under way; later ones connect anew", async () => {
  await using server = await served(() => sleep(100));
  const session = connect({ address: server.fake.address, token: "t" });
  const call = failureOf(session.memories.getMemory({}));
  await firstCallOf(server);

  session.disconnect();

  assert.equal(codeOf(await call), Code.Canceled);
  await session.memories.getMemory({});
  assert.deepEqual(server.calls, ["get", "get"]);
});

test("one call at a time has one connection, and calls at once have up to four", async () => {
  await using server = await served(() => sleep(50));
  const session = connect({ address: server.fake.address, token: "t" });

  await session.memories.getMemory({});
  await session.memories.getMemory({});
  assert.equal(server.fake.connections, 1);

  await Promise.all(Array.from({ length: 8 }, () => session.memories.getMemory({})));
  assert.equal(server.fake.connections, 4);
});

test("a unix socket will do", async () => {
  await using server = await served(() => {}, join(mkdtempSync(join(tmpdir(), "muniment-")), "socket"));

  await connect({ address: server.fake.address, token: "t" }).memories.getMemory({});

  assert.deepEqual(server.calls, ["get"]);
});
