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
  assert.deepEqual(Object.keys(sessions).sort(), ["closeSession", "getSession", "listSessions", "raiseTaint"]);
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
