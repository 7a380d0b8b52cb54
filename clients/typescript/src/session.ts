// What a session may do: what its agent keeps, as far as its taint sees.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, createClient } from "@connectrpc/connect";
import type { Calls } from "./calls.js";
import type { Connection } from "./connection.js";
import { MunimentError } from "./errors.js";
import { BlockService } from "./gen/muniment/v1/block_service_pb.js";
import { MemoryService } from "./gen/muniment/v1/memory_service_pb.js";
import { NoteService } from "./gen/muniment/v1/note_service_pb.js";
import {
  type ImportPassagesResponse,
  PassageService,
  type StorePassageRequestSchema,
} from "./gen/muniment/v1/passage_service_pb.js";
import { PromptService } from "./gen/muniment/v1/prompt_service_pb.js";
import type { Session } from "./gen/muniment/v1/session_pb.js";
import { SessionService } from "./gen/muniment/v1/session_service_pb.js";
import { VersionService } from "./gen/muniment/v1/version_service_pb.js";
import { type OwnSession, ownSession, type SessionBlocks, sessionBlocks } from "./parts.js";
import { passes } from "./retries.js";

/** One session of an agent, by its token. */
export class SessionClient {
  readonly memories: Client<typeof MemoryService>;
  readonly notes: Client<typeof NoteService>;
  readonly blocks: SessionBlocks;
  readonly passages: Client<typeof PassageService>;
  readonly prompts: Client<typeof PromptService>;
  readonly versions: Client<typeof VersionService>;
  readonly sessions: OwnSession;

  readonly #calls: Calls;
  readonly #connection: Connection | undefined;

  /** Made by `connect` and by a `HostClient`, which lends its connection. */
  constructor(calls: Calls, connection?: Connection) {
    this.#calls = calls;
    this.#connection = connection;
    this.memories = createClient(MemoryService, calls);
    this.notes = createClient(NoteService, calls);
    this.blocks = sessionBlocks(createClient(BlockService, calls));
    this.passages = createClient(PassageService, calls);
    this.prompts = createClient(PromptService, calls);
    this.versions = createClient(VersionService, calls);
    this.sessions = ownSession(createClient(SessionService, calls));
  }

  /** The credential. Whoever has it is this session. */
  get token(): string {
    return this.#calls.credential;
  }

  /**
   * Import passages that are all at hand. If each of them has a `passageId`, the import is made again like other safe
   * calls: what the server has stored already then counts as existing. The deadline is for all attempts.
   */
  async importAll(
    passages: readonly MessageInitShape<typeof StorePassageRequestSchema>[],
    { signal, timeoutMs, ...options }: CallOptions = {},
  ): Promise<ImportPassagesResponse> {
    async function* requests() {
      for (const passage of passages) {
        yield { passage };
      }
    }
    const isSafe = passages.every(({ passageId = "" }) => passageId !== "");
    return this.#calls.repeat(
      (leftMs) =>
        this.passages.importPassages(requests(), { ...options, ...(signal && { signal }), timeoutMs: leftMs() }),
      (error) => isSafe && passes(error),
      signal,
      timeoutMs,
    );
  }

  /** Let go of the connection and leave the session open. One lent by a host stays the host's. */
  disconnect(): void {
    this.#connection?.close();
  }
}

/** A session that its host has just opened. Leaving it (`await using`) closes it. */
export class OpenedSession extends SessionClient implements AsyncDisposable {
  readonly #info: Session;

  constructor(calls: Calls, info: Session) {
    super(calls);
    this.#info = info;
  }

  /** The session as it was opened. Its host may have raised its taint since. */
  get info(): Session {
    return this.#info;
  }

  /** Close the session: its token is worth nothing from then on. One that is over already is what was wanted. */
  async close(): Promise<void> {
    try {
      await this.sessions.closeSession({});
    } catch (error) {
      if (!(error instanceof MunimentError && error.code === Code.Unauthenticated)) {
        throw error;
      }
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
