import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  Classification,
  Code,
  ConversationTaintedSchema,
  connect,
  Integrity,
  MemoryService,
  PassageService,
  pages,
  type Session,
  SessionSchema,
  SessionService,
} from "../src/index.js";
import { Fake, failureOf, status } from "./fake.js";

const { PUBLIC, INTERNAL, CONFIDENTIAL, RESTRICTED } = Classification;
const HOUR = 3600;
const EXPIRED = () => status(Code.Unauthenticated, "CREDENTIAL_EXPIRED");
const TAINTED = (taint: Classification) =>
  status(Code.FailedPrecondition, "CONVERSATION_TAINTED", { desc: ConversationTaintedSchema, value: { taint } });

/** A server whose sessions s1, s2, … have the tokens t1, t2, …, and the hosts and sessions that call it. */
class Server implements AsyncDisposable {
  /** How many seconds the next sessions are valid. The last one stays. */
  readonly ttls = [HOUR];
  readonly sessions: Session[] = [];
  readonly calls: string[] = [];
  readonly expired = new Set<string>();
  /** What the next calls of a method do before they are answered. */
  readonly script: Record<string, (() => unknown)[]> = {};
  taint = PUBLIC;
  integrity = Integrity.UNTRUSTED;
  #fake!: Fake;

  static async start(): Promise<Server> {
    const server = new Server();
    server.#fake = await Fake.start((router) => {
      router.service(SessionService, {
        openSession: server.#answered("open", ({ taint }) => server.#opened(taint)),
        resetSession: server.#answered("reset", () => server.#opened(PUBLIC)),
        getSession: server.#answered("get", ({ sessionId }) => ({ session: server.#session(sessionId) })),
        raiseTaint: server.#answered("raise", ({ sessionId, taint }) => {
          server.taint = taint;
          return { session: server.#session(sessionId) };
        }),
        closeSession: server.#answered("close", () => ({})),
      });
      router.service(MemoryService, {
        saveMemory: server.#answered("save", () => ({})),
        deleteMemory: server.#answered("delete", () => ({})),
        listMemories: async ({ pageToken }, context) => {
          const token = await server.#heard("list", pageToken, context);
          if (pageToken !== "" && pageToken !== `of ${token}`) {
            throw status(Code.InvalidArgument, "PAGE_TOKEN_INVALID");
          }
          return { memories: [{ key: pageToken }], nextPageToken: pageToken === "" ? `of ${token}` : "" };
        },
      });
      router.service(PassageService, {
        importPassages: async (_, context) => {
          await server.#heard("import", "", context);
          return {};
        },
      });
    });
    return server;
  }

  conversation(ttl?: { seconds: bigint }) {
    const host = connect({ address: this.#fake.address, hostKey: "h" });
    return host.conversation("ada", "chat-42", ttl ? { ttl } : {});
  }

  session(token: string) {
    return connect({ address: this.#fake.address, token });
  }

  /** The calls since this was asked the last time: method, what it is about, and credential. */
  heard(): string[] {
    return this.calls.splice(0);
  }

  #answered<Request extends object, Answer>(name: string, answer: (request: Request) => Answer) {
    return async (request: Request, context: HandlerContext): Promise<Answer> => {
      await this.#heard(name, aboutOf(request), context);
      return answer(request);
    };
  }

  async #heard(name: string, about: string, { requestHeader }: HandlerContext): Promise<string> {
    const credential = (requestHeader.get("authorization") ?? "").replace("Bearer ", "");
    this.calls.push([name, about, credential].filter(Boolean).join(" "));
    await this.script[name]?.shift()?.();
    if (this.expired.has(credential)) {
      throw EXPIRED();
    }
    return credential;
  }

  #opened(taint: Classification) {
    const ttl = this.ttls.length > 1 ? this.ttls.shift() : this.ttls[0];
    const id = this.sessions.length + 1;
    this.taint = taint || this.taint;
    const session = create(SessionSchema, {
      sessionId: `s${id}`,
      agentId: "ada",
      conversationId: "chat-42",
      createTime: timestampFromMs(1_000_000),
      expireTime: timestampFromMs(1_000_000 + 1000 * (ttl ?? 0)),
    });
    this.sessions.push(session);
    return { token: `t${id}`, session: { ...session, taint: this.taint } };
  }

  #session(sessionId: string | undefined): Session {
    const found = this.sessions.find((session) => session.sessionId === sessionId);
    if (!found) {
      throw status(Code.NotFound, "SESSION_NOT_FOUND");
    }
    return { ...found, taint: this.taint, integrity: this.integrity };
  }

  [Symbol.asyncDispose]() {
    return this.#fake[Symbol.asyncDispose]();
  }
}

function aboutOf(request: object): string {
  if ("taint" in request) {
    return Classification[request.taint as Classification] ?? "";
  }
  return "sessionId" in request ? String(request.sessionId) : "";
}

const throwing = (failure: unknown) => () => {
  throw failure;
};

/** Something to wait for until it ends. */
function held() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { until: () => ended, end: () => end() };
}

test("a session with less than a quarter of its time is opened again, at the taint of its conversation", async () => {
  await using server = await Server.start();
  server.ttls.unshift(0);
  const conversation = await server.conversation();
  server.taint = CONFIDENTIAL;

  await conversation.memories.saveMemory({ key: "k" });
  await conversation.memories.saveMemory({ key: "k" });

  assert.deepEqual(server.heard(), ["open UNSPECIFIED h", "get s1 h", "open CONFIDENTIAL h", "save t2", "save t2"]);
  assert.equal(conversation.token, "t2");
  assert.deepEqual([conversation.info.sessionId, conversation.info.taint], ["s2", CONFIDENTIAL]);
});

test("a session is opened again when a quarter of its time is left, and not before", async (t) => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.heard();
  const clock = performance.now.bind(performance);
  let aheadMs = 0;
  t.mock.method(performance, "now", () => clock() + aheadMs);

  aheadMs = 44 * 60_000;
  await conversation.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["save t1"]);
  aheadMs = 46 * 60_000;
  await conversation.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["get s1 h", "open PUBLIC h", "save t2"]);
});

test("each session is opened with the time that was asked for", async () => {
  const asked: unknown[] = [];
  await using fake = await Fake.start((router) =>
    router.service(SessionService, {
      openSession: ({ agentId, conversationId, taint, ttl }) => {
        asked.push([agentId, conversationId, taint, ttl?.seconds]);
        return {
          token: "t",
          session: { agentId, conversationId: "new", taint: INTERNAL, createTime: {}, expireTime: {} },
        };
      },
      getSession: () => ({ session: { agentId: "ada", conversationId: "new", taint: INTERNAL } }),
    }),
  );
  const host = connect({ address: fake.address, hostKey: "h" });

  const conversation = await host.conversation("ada", "", { taint: INTERNAL, ttl: { seconds: 60n } });
  await failureOf(conversation.memories.getMemory({ key: "k" }));

  assert.deepEqual(asked, [
    ["ada", "", INTERNAL, 60n],
    ["ada", "new", INTERNAL, 60n],
  ]);
});

test("if it cannot be renewed in time, the old token is used, and the next call tries again", async () => {
  await using server = await Server.start();
  server.ttls.unshift(0);
  server.script.open = [() => {}, throwing(status(Code.PermissionDenied, "CEILING_EXCEEDED"))];
  const conversation = await server.conversation();
  server.heard();

  await conversation.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["get s1 h", "open PUBLIC h", "save t1"]);
  await conversation.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["get s1 h", "open PUBLIC h", "save t2"]);
});

test("a call whose token has expired is made again with another, whatever it is", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.expired.add("t1");
  server.heard();

  await conversation.memories.deleteMemory({ key: "k" });

  assert.deepEqual(server.heard(), ["delete t1", "get s1 h", "open PUBLIC h", "delete t2"]);
});

test("calls that expire together wait for one renewal", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.expired.add("t1");
  server.heard();

  await Promise.all([1, 2, 3].map(() => conversation.memories.deleteMemory({ key: "k" })));

  const counted = server.heard().sort();
  assert.deepEqual(counted, [
    ...Array(3).fill("delete t1"),
    ...Array(3).fill("delete t2"),
    "get s1 h",
    "open PUBLIC h",
  ]);
});

test("a call is made again once", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.expired.add("t1").add("t2");

  assert.match(String(await failureOf(conversation.memories.saveMemory({ key: "k" }))), /CREDENTIAL_EXPIRED/);
  assert.equal(server.heard().filter((call) => call.startsWith("save")).length, 2);
});

test("a session that somebody has ended is not opened again", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  const [session] = server.sessions;
  assert.ok(session);
  server.expired.add("t1");
  server.heard();

  session.closeTime = timestampFromMs(7_000_000);
  assert.match(String(await failureOf(conversation.memories.saveMemory({ key: "k" }))), /CREDENTIAL_EXPIRED/);
  server.script.get = [throwing(status(Code.NotFound, "SESSION_NOT_FOUND"))];
  assert.match(String(await failureOf(conversation.memories.saveMemory({ key: "k" }))), /CREDENTIAL_EXPIRED/);
  assert.deepEqual(server.heard(), ["save t1", "get s1 h", "save t1", "get s1 h"]);

  session.closeTime = session.expireTime;
  await conversation.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["save t1", "get s1 h", "open PUBLIC h", "save t2"]);
});

test("a server that is set back to before a raise is noticed", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  await conversation.raiseTaint(CONFIDENTIAL, "read the payroll");
  server.expired.add("t1");
  server.heard();

  for (const [taint, integrity] of [[PUBLIC, Integrity.UNTRUSTED] as const, [CONFIDENTIAL, Integrity.TRUSTED] as const]) {
    Object.assign(server, { taint, integrity });
    assert.match(String(await failureOf(conversation.memories.saveMemory({ key: "k" }))), /CREDENTIAL_EXPIRED/);
    assert.deepEqual(server.heard(), ["save t1", "get s1 h"]);
  }
});

test("a token that is refused for any other reason is not renewed, and the session of another client never", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.script.save = [throwing(status(Code.Unauthenticated, "CREDENTIAL_INVALID"))];
  server.heard();

  assert.match(String(await failureOf(conversation.memories.saveMemory({ key: "k" }))), /CREDENTIAL_INVALID/);
  server.script.save = [throwing(EXPIRED())];
  const session = server.session("t1");
  assert.match(String(await failureOf(session.memories.saveMemory({ key: "k" }))), /CREDENTIAL_EXPIRED/);
  assert.deepEqual(server.heard(), ["save t1", "save t1"]);
});

test("a raise between two steps of a renewal is followed, at most four times, and never without a level", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.expired.add("t1");
  server.heard();
  const raises = [INTERNAL, CONFIDENTIAL, RESTRICTED].map((taint) => throwing(TAINTED(taint)));

  const again = throwing(TAINTED(RESTRICTED));
  server.script.open = [...raises, again, again];
  assert.match(String(await failureOf(conversation.memories.saveMemory({ key: "k" }))), /CONVERSATION_TAINTED/);
  const opened = ["open PUBLIC h", "open INTERNAL h", "open CONFIDENTIAL h", "open RESTRICTED h"];
  assert.deepEqual(server.heard(), ["save t1", "get s1 h", ...opened, "open RESTRICTED h"]);

  server.script.open = [throwing(status(Code.FailedPrecondition, "CONVERSATION_TAINTED"))];
  assert.match(String(await failureOf(conversation.memories.saveMemory({ key: "k" }))), /CONVERSATION_TAINTED/);
  assert.deepEqual(server.heard(), ["save t1", "get s1 h", "open PUBLIC h"]);

  server.script.open = raises;
  await conversation.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["save t1", "get s1 h", ...opened, "save t2"]);
});

test("a renewal that finds no server is tried again with the call, which has not begun", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.expired.add("t1");
  server.heard();
  server.script.open = [throwing(status(Code.Unavailable, "UNAVAILABLE"))];

  await conversation.memories.deleteMemory({ key: "k" });

  const renewal = ["delete t1", "get s1 h", "open PUBLIC h"];
  assert.deepEqual(server.heard(), [...renewal, ...renewal, "delete t2"]);
});

test("a list goes on over a renewal", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  const keys: string[] = [];
  for await (const page of pages(conversation.memories.listMemories, {})) {
    keys.push(...page.memories.map(({ key }) => key));
    if (keys.length === 1) {
      server.script.save = [throwing(EXPIRED())];
      await conversation.memories.saveMemory({ key: "k" });
      server.heard();
    }
  }
  assert.deepEqual(keys, ["", "of t1"]);
  assert.deepEqual(server.heard(), ["list of t1 t2", "list of t1 t1"]);

  server.expired.add("t1");
  const lost = conversation.memories.listMemories({ pageToken: "of t1" });
  assert.match(String(await failureOf(lost)), /PAGE_TOKEN_INVALID/);
});

test("a stream begins with a fresh token, and is never made again", async () => {
  await using server = await Server.start();
  server.ttls.unshift(0);
  const conversation = await server.conversation();
  const passages = [{ content: "p", passageId: "7f4df0a5-6c1c-4a3e-9c0b-4f6f0a4c7b11" }];
  server.heard();

  await conversation.importAll(passages);
  assert.deepEqual(server.heard(), ["get s1 h", "open PUBLIC h", "import t2"]);
  server.expired.add("t2");
  assert.match(String(await failureOf(conversation.importAll(passages))), /CREDENTIAL_EXPIRED/);
  assert.deepEqual(server.heard(), ["import t2"]);
});

test("a call waits for a renewal no longer than its deadline, and until it is aborted", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.expired.add("t1");
  const renewal = held();
  server.script.get = [renewal.until];

  const late = await failureOf(conversation.memories.saveMemory({ key: "k" }, { timeoutMs: 50 }));
  assert.match(String(late), /DEADLINE_EXCEEDED/);
  const aborted = await failureOf(conversation.memories.saveMemory({ key: "k" }, { signal: AbortSignal.timeout(50) }));
  assert.match(String(aborted), /CANCELLED/);

  renewal.end();
  await conversation.memories.saveMemory({ key: "k" });
  assert.equal(server.heard().filter((call) => call.startsWith("get")).length, 1);
});

test("closing closes both sessions, once, and nothing is renewed after it", async () => {
  await using server = await Server.start();
  server.ttls.unshift(0, 0);
  {
    await using conversation = await server.conversation();
    await conversation.memories.saveMemory({ key: "k" });
    server.heard();
    server.script.close = [throwing(status(Code.NotFound, "SESSION_NOT_FOUND"))];
    await conversation.close();
    assert.deepEqual(server.heard(), ["close s1 h", "close s2 h"]);
    server.script.save = [throwing(status(Code.Unauthenticated, "CREDENTIAL_INVALID"))];
    assert.match(String(await failureOf(conversation.memories.saveMemory({ key: "k" }))), /CREDENTIAL_INVALID/);
  }
  assert.deepEqual(server.heard(), ["save t2"]);
});

test("a close that failed can be made again, for what is still open", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.heard();
  server.script.close = [throwing(status(Code.Internal, "INTERNAL"))];

  assert.match(String(await failureOf(conversation.close())), /INTERNAL/);
  await conversation.close();

  assert.deepEqual(server.heard(), ["close s1 h", "close s1 h"]);
});

test("closing waits for a renewal that is under way, and closes what comes of it", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  const renewal = held();
  server.script.save = [throwing(EXPIRED())];
  server.script.get = [renewal.until];
  const call = conversation.memories.saveMemory({ key: "k" });
  while (!server.calls.includes("get s1 h")) {
    await sleep(1);
  }

  const closing = conversation.close();
  await conversation.memories.listMemories({});
  assert.deepEqual(server.heard(), ["open UNSPECIFIED h", "save t1", "get s1 h", "list t1"]);
  renewal.end();
  await Promise.all([call, closing]);

  assert.deepEqual(
    server.heard().filter((each) => !each.startsWith("save")),
    ["open PUBLIC h", "close s1 h", "close s2 h"],
  );
});

test("a call that hears late that its token has expired takes the one that is there", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  const late = held();
  server.expired.add("t1");
  server.script.delete = [late.until];
  const call = conversation.memories.deleteMemory({ key: "k" });
  await conversation.memories.saveMemory({ key: "k" });
  server.heard();

  late.end();
  await call;

  assert.deepEqual(server.heard(), ["delete t2"]);
});

test("a raise is of the session that is open now", async () => {
  await using server = await Server.start();
  server.ttls.unshift(0);
  const conversation = await server.conversation();
  server.heard();

  await conversation.raiseTaint(CONFIDENTIAL, "read the payroll");

  assert.deepEqual(server.heard(), ["get s1 h", "open PUBLIC h", "raise CONFIDENTIAL h"]);
  assert.equal(conversation.info.taint, CONFIDENTIAL);
});

test("a reset gives another conversation, and the old one is over", async () => {
  await using server = await Server.start();
  server.ttls.unshift(0);
  const old = await server.conversation();
  server.expired.add("t2");
  server.heard();

  await using anew = await old.reset("the context was wiped");
  await anew.memories.saveMemory({ key: "k" });
  assert.match(String(await failureOf(old.memories.saveMemory({ key: "k" }))), /CREDENTIAL_EXPIRED/);
  assert.deepEqual(server.heard(), ["get s1 h", "open PUBLIC h", "reset s2 h", "save t3", "save t2"]);

  server.expired.add("t3");
  await anew.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["save t3", "get s3 h", "open PUBLIC h", "save t4"]);
});

test("a conversation whose reset failed goes on", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.script.reset = [throwing(status(Code.Internal, "INTERNAL"))];
  assert.match(String(await failureOf(conversation.reset())), /INTERNAL/);
  server.expired.add("t1");
  await conversation.memories.saveMemory({ key: "k" });
});

test("a printed conversation shows no token", async () => {
  const { inspect } = await import("node:util");
  await using server = await Server.start();
  assert.doesNotMatch(inspect(await server.conversation(), { depth: 9, showHidden: true }), /t1/);
});
