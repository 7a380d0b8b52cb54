import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, connect, MemoryService, pages, SessionService } from "../src/index.js";
import { Fake, failureOf, status } from "./fake.js";

/** A server that opens sessions with the token of `token`, and the credentials of whoever closes one. */
async function served(token: string, close: () => void = () => {}) {
  const closed: (string | null)[] = [];
  const opened = { token, session: { sessionId: "s1" } };
  const fake = await Fake.start((router) => {
    router.service(SessionService, {
      openSession: () => opened,
      resetSession: () => opened,
      closeSession: (_, { requestHeader }) => {
        closed.push(requestHeader.get("authorization"));
        close();
        return {};
      },
    });
  });
  const host = connect({ address: fake.address, hostKey: "h" });
  return { host, closed, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

test("a session that a host opens or resets has its own credential, and is closed when it is left", async () => {
  await using server = await served("ms_1");
  for (const make of [() => server.host.openSession({}), () => server.host.resetSession({})]) {
    {
      await using session = await make();
      assert.equal(session.token, "ms_1");
      assert.equal(session.info.sessionId, "s1");
    }
    assert.deepEqual(server.closed.splice(0), ["Bearer ms_1"]);
  }
});

test("no response of a host's holds a token", () => {
  const { sessions } = connect({ address: "localhost:1", hostKey: "h" });
  assert.deepEqual(Object.keys(sessions).sort(), [
    "closeSession",
    "getSession",
    "listSessions",
    "raiseTaint",
    "renewSession",
  ]);
});

test("leaving a session that is over already is no failure; any other is", async () => {
  await using over = await served("t", () => {
    throw status(Code.Unauthenticated, "CREDENTIAL_INVALID");
  });
  await (await over.host.openSession({})).close();
  await using away = await served("t", () => {
    throw status(Code.Internal, "INTERNAL");
  });
  const session = await away.host.openSession({});
  assert.match(String(await failureOf(session.close())), /INTERNAL/);
});

test("pages are fetched as they are asked for, with the same filter", async () => {
  const asked: string[] = [];
  await using fake = await Fake.start((router) =>
    router.service(MemoryService, {
      listMemories: ({ tag, pageToken }) => {
        asked.push(`${tag} ${pageToken}`);
        return { memories: [{ key: pageToken || "first" }], nextPageToken: { "": "2", "2": "3" }[pageToken] };
      },
    }),
  );
  const { memories } = connect({ address: fake.address, token: "t" });

  const keys: string[] = [];
  for await (const page of pages(memories.listMemories, { tag: "work" })) {
    keys.push(...page.memories.map((memory) => memory.key));
    assert.equal(asked.length, keys.length);
  }

  assert.deepEqual(keys, ["first", "2", "3"]);
  assert.deepEqual(asked, ["work ", "work 2", "work 3"]);
});

/** A server whose taint is raised before the second page, so many times. The keys are those of the last attempt. */
async function disturbed(raises: number) {
  let attempts = 0;
  const fake = await Fake.start((router) =>
    router.service(MemoryService, {
      listMemories: ({ pageToken }) => {
        if (pageToken === "") {
          attempts += 1;
          return { memories: [{ key: `first of ${attempts}` }], nextPageToken: "2" };
        }
        if (attempts <= raises) {
          throw status(Code.Aborted, "TAINT_CHANGED");
        }
        return { memories: [{ key: "second" }] };
      },
    }),
  );
  const { memories } = connect({ address: fake.address, token: "t" });
  return { list: pages(memories.listMemories, {}), [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

test("a loop over pages fails if the taint is raised between two of them, and so does a whole list", async () => {
  await using server = await disturbed(Number.POSITIVE_INFINITY);
  const keys: string[] = [];
  const loop = async () => {
    for await (const page of server.list) {
      keys.push(...page.memories.map((memory) => memory.key));
    }
  };

  assert.match(String(await failureOf(loop())), /TAINT_CHANGED/);
  assert.deepEqual(keys, ["first of 1"]);
  assert.match(String(await failureOf(server.list.all())), /TAINT_CHANGED/);
});

test("a whole list is read again as often as the taint can rise, and holds pages of one attempt alone", async () => {
  for (const raises of [0, 1, 4]) {
    await using server = await disturbed(raises);
    const read = await server.list.all({ restartOnTaintChange: true });
    const keys = read.flatMap((page) => page.memories.map((memory) => memory.key));
    assert.deepEqual(keys, [`first of ${raises + 1}`, "second"]);
  }
  await using restless = await disturbed(5);
  assert.match(String(await failureOf(restless.list.all({ restartOnTaintChange: true }))), /TAINT_CHANGED/);
});

test("only a raised taint begins a list anew", async () => {
  let attempts = 0;
  await using fake = await Fake.start((router) =>
    router.service(MemoryService, {
      listMemories: () => {
        attempts += 1;
        throw status(Code.Aborted, "ETAG_STALE");
      },
    }),
  );
  const { memories } = connect({ address: fake.address, token: "t" });

  const failure = await failureOf(pages(memories.listMemories, {}).all({ restartOnTaintChange: true }));

  assert.match(String(failure), /ETAG_STALE/);
  assert.equal(attempts, 1);
});
