import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { DurationSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  Classification,
  Code,
  connect,
  MemoryService,
  PassageService,
  type Session,
  SessionSchema,
  SessionService,
} from "../src/index.js";
import { Fake, failureOf, status } from "./fake.js";

const { PUBLIC, CONFIDENTIAL } = Classification;
const HOUR = 3600;
const EXPIRED = () => status(Code.Unauthenticated, "CREDENTIAL_EXPIRED");
/** A server whose sessions s1, s2, … have the tokens t1, t2, …, and the hosts and sessions that call it. */
class Server implements AsyncDisposable {
  /** How many seconds the next sessions are valid. The last one stays. */
  readonly ttls = [HOUR];
  readonly sessions: Session[] = [];
  readonly calls: string[] = [];
  readonly expired = new Set<string>();
  /** For how long sessions were renewed. */
  readonly lasting: unknown[] = [];
  /** What the next calls of a method do before they are answered. */
  readonly script: Record<string, (() => unknown)[]> = {};
  taint = PUBLIC;
  #fake!: Fake;

  static async start(): Promise<Server> {
    const server = new Server();
    server.#fake = await Fake.start((router) => {
      router.service(SessionService, {
        openSession: server.#answered("open", ({ taint }) => server.#opened(taint)),
        resetSession: server.#answered("reset", () => server.#opened(PUBLIC)),
        renewSession: server.#answered("renew", ({ sessionId, ttl }) => {
          server.lasting.push(ttl);
          server.expired.clear();
          return { session: server.#session(sessionId) };
        }),
        raiseTaint: server.#answered("raise", ({ sessionId, taint }) => {
          server.taint = taint;
          return { session: server.#session(sessionId) };
        }),
        closeSession: server.#answered("close", () => ({})),
      });
      router.service(MemoryService, {
        saveMemory: server.#answered("save", () => ({})),
        deleteMemory: server.#answered("delete", () => ({})),
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
    return { ...found, taint: this.taint };
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

test("a session with less than a quarter of its time is renewed", async () => {
  await using server = await Server.start();
  server.ttls.unshift(4, 0);
  const young = await server.conversation();
  await young.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["open UNSPECIFIED h", "save t1"]);
  const conversation = await server.conversation();
  server.taint = CONFIDENTIAL;
  server.heard();

  await conversation.memories.saveMemory({ key: "k" });

  assert.deepEqual(server.heard(), ["renew s2 h", "save t2"]);
  assert.deepEqual([conversation.token, conversation.info.taint], ["t2", CONFIDENTIAL]);
});

test("a session is renewed for the time for which it was opened", async () => {
  await using server = await Server.start();
  server.ttls.unshift(90.5);
  const conversation = await server.conversation({ seconds: 90n });
  server.expired.add("t1");

  await conversation.memories.saveMemory({ key: "k" });

  assert.deepEqual(server.lasting.map(String), [String(create(DurationSchema, { seconds: 90n, nanos: 500_000_000 }))]);
});

test("a session that cannot be renewed in time goes on, and is renewed later", async () => {
  await using server = await Server.start();
  server.ttls.unshift(1);
  const conversation = await server.conversation();
  await sleep(750);
  server.script.renew = [throwing(status(Code.PermissionDenied, "CEILING_EXCEEDED"))];
  server.heard();

  await conversation.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["renew s1 h", "save t1"]);
  await sleep(60);
  await conversation.memories.saveMemory({ key: "k" });
  await conversation.memories.saveMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["renew s1 h", "save t1", "save t1"]);
});

test("a call whose token has expired is made again, once, whatever it is", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.script.delete = [throwing(EXPIRED())];
  server.heard();

  await conversation.memories.deleteMemory({ key: "k" });
  assert.deepEqual(server.heard(), ["delete t1", "renew s1 h", "delete t1"]);

  server.script.delete = [throwing(EXPIRED()), throwing(EXPIRED())];
  assert.match(String(await failureOf(conversation.memories.deleteMemory({ key: "k" }))), /CREDENTIAL_EXPIRED/);
  assert.deepEqual(server.heard(), ["delete t1", "renew s1 h", "delete t1"]);
});

test("a session that somebody has ended is not renewed", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.expired.add("t1");
  server.script.renew = [throwing(status(Code.NotFound, "SESSION_NOT_FOUND"))];
  server.heard();

  assert.match(String(await failureOf(conversation.memories.saveMemory({ key: "k" }))), /CREDENTIAL_EXPIRED/);
  assert.deepEqual(server.heard(), ["save t1", "renew s1 h"]);
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

test("a renewal that finds no server is tried again", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.expired.add("t1");
  server.heard();
  server.script.renew = [throwing(status(Code.Unavailable, "UNAVAILABLE"))];

  await conversation.memories.deleteMemory({ key: "k" });

  assert.deepEqual(server.heard(), ["delete t1", "renew s1 h", "renew s1 h", "delete t1"]);
});

test("a stream begins with a fresh token, and is never made again", async () => {
  await using server = await Server.start();
  server.ttls.unshift(0);
  const conversation = await server.conversation();
  const passages = [{ content: "p", passageId: "7f4df0a5-6c1c-4a3e-9c0b-4f6f0a4c7b11" }];
  server.heard();

  await conversation.importAll(passages);
  assert.deepEqual(server.heard(), ["renew s1 h", "import t1"]);
  server.script.import = [throwing(EXPIRED())];
  assert.match(String(await failureOf(conversation.importAll(passages))), /CREDENTIAL_EXPIRED/);
  assert.deepEqual(server.heard(), ["renew s1 h", "import t1"]);
});

test("a renewal takes no longer than the call, and ends with it", async () => {
  await using server = await Server.start();
  const conversation = await server.conversation();
  server.expired.add("t1");
  server.script.renew = [() => sleep(1000), () => sleep(1000)];

  const late = await failureOf(conversation.memories.saveMemory({ key: "k" }, { timeoutMs: 50 }));
  assert.match(String(late), /DEADLINE_EXCEEDED/);
  const aborted = await failureOf(conversation.memories.saveMemory({ key: "k" }, { signal: AbortSignal.timeout(50) }));
  assert.match(String(aborted), /CANCELLED/);
});

test("closing closes the session, unless it has ended", async () => {
  await using server = await Server.start();
  {
    await using conversation = await server.conversation();
    server.heard();
    server.script.close = [throwing(status(Code.Internal, "INTERNAL")), throwing(EXPIRED())];
    assert.match(String(await failureOf(conversation.close())), /INTERNAL/);
    server.script.renew = [throwing(status(Code.NotFound, "SESSION_NOT_FOUND"))];
    await conversation.close();
    assert.deepEqual(server.heard(), ["close t1", "close t1", "renew s1 h"]);
  }
  assert.deepEqual(server.heard(), ["close t1"]);
});

test("a raise is of a session that is open", async () => {
  await using server = await Server.start();
  server.ttls.unshift(0);
  const conversation = await server.conversation();
  server.heard();

  await conversation.raiseTaint(CONFIDENTIAL, "read the payroll");

  assert.deepEqual(server.heard(), ["renew s1 h", "raise CONFIDENTIAL h"]);
  assert.equal(conversation.info.taint, CONFIDENTIAL);
});

test("a reset gives another conversation", async () => {
  await using server = await Server.start();
  server.ttls.unshift(0);
  const old = await server.conversation();
  server.script.reset = [throwing(status(Code.Internal, "INTERNAL"))];
  assert.match(String(await failureOf(old.reset())), /INTERNAL/);
  server.heard();

  await using anew = await old.reset("the context was wiped");
  server.expired.add("t2");
  await anew.memories.saveMemory({ key: "k" });

  assert.deepEqual(server.heard(), ["renew s1 h", "reset s1 h", "save t2", "renew s2 h", "save t2"]);
});

test("a printed conversation shows no token", async () => {
  const { inspect } = await import("node:util");
  await using server = await Server.start();
  assert.doesNotMatch(inspect(await server.conversation(), { depth: 9, showHidden: true }), /t1/);
});
