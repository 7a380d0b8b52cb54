// Sessions that their host opens again in time.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, Code } from "@connectrpc/connect";
import { type Credential, checked, type Deadline } from "./credentials.js";
import { MunimentError } from "./errors.js";
import { type Classification, Integrity } from "./gen/muniment/v1/classification_pb.js";
import { type Session, SessionSchema } from "./gen/muniment/v1/session_pb.js";
import type { OpenSessionRequestSchema, SessionService } from "./gen/muniment/v1/session_service_pb.js";
import { RAISES } from "./pages.js";
import { pauseFor } from "./retries.js";

/** The part of its time after which a session is renewed. */
const USED = 0.75;

/** The sessions of a host. */
type Host = Client<typeof SessionService>;

/** What a session is opened with. */
export type Opening = Pick<
  MessageInitShape<typeof OpenSessionRequestSchema>,
  "agentId" | "conversationId" | "taint" | "integrity" | "readOnly" | "ttl"
>;

/** A session that the host has opened. */
interface Opened {
  readonly token: string;
  readonly info: Session;
  /** When to renew it, by the monotonic clock. */
  readonly dueMs: number;
}

/** The token of a conversation, which is renewed before it expires, or when the server says that it has. */
export class Renewals implements Credential {
  readonly #host: Host;
  readonly #ttl: Opening["ttl"];
  #now: Opened;
  #previous: Opened | undefined;
  /** The ids of the sessions that `close` closes: at most the previous one and the one that holds now. */
  #open: string[];
  #renewal: Promise<boolean> | undefined;
  #isOver = false;

  private constructor(host: Host, ttl: Opening["ttl"], opened: Opened) {
    this.#host = host;
    this.#ttl = ttl;
    this.#now = opened;
    this.#open = [opened.info.sessionId];
  }

  static async open(host: Host, opening: Opening, options?: CallOptions): Promise<Renewals> {
    return new Renewals(host, opening.ttl, await timed(host.openSession(opening, options)));
  }

  get current(): string {
    return this.#now.token;
  }

  get info(): Session {
    return this.#now.info;
  }

  /** If the renewal fails, the old token is still valid for a while. */
  async fresh(deadline?: Deadline): Promise<string> {
    if (performance.now() >= this.#now.dueMs) {
      await within(this.#renewed(), deadline).catch(() => false);
    }
    return this.current;
  }

  async replacement(
    sent: string,
    { reason, reasonName }: MunimentError,
    deadline: Deadline,
  ): Promise<string | undefined> {
    if (reason === "PAGE_TOKEN_INVALID") {
      return this.#previous?.token; // the page token may belong to it
    }
    if (reasonName !== "CREDENTIAL_EXPIRED") {
      return undefined;
    }
    const isRenewed = sent !== this.current || (await within(this.#renewed(), deadline));
    return isRenewed ? this.current : undefined;
  }

  async raiseTaint(raise: { taint: Classification; reason: string }, options?: CallOptions): Promise<void> {
    await this.fresh();
    const { sessionId } = this.info;
    const { session } = await this.#host.raiseTaint({ ...raise, sessionId }, options);
    if (session && sessionId === this.info.sessionId) {
      this.#now = { ...this.#now, info: session };
    }
  }

  /** Those of the conversation after it was reset. These end. */
  async reset({ reason }: { reason: string }, options?: CallOptions): Promise<Renewals> {
    await this.fresh();
    await this.#end();
    try {
      const { sessionId } = this.info;
      return new Renewals(this.#host, this.#ttl, await timed(this.#host.resetSession({ sessionId, reason }, options)));
    } catch (error) {
      this.#isOver = false;
      throw error;
    }
  }

  /** Renew no more, and close what is open. */
  async close(): Promise<void> {
    await this.#end();
    for (let id = this.#open[0]; id !== undefined; id = this.#open[0]) {
      await unlessGone(this.#host.closeSession({ sessionId: id }));
      this.#open.shift();
    }
  }

  /** Renew no more. One that is under way comes to its end. */
  async #end(): Promise<void> {
    this.#isOver = true;
    await this.#renewal?.catch(() => false);
  }

  /** Whether the session could be renewed. One renewal serves all calls that wait for it. */
  #renewed(): Promise<boolean> {
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  async #renew(): Promise<boolean> {
    const known = this.#isOver ? undefined : await this.#renewable();
    if (!known) {
      return false;
    }
    const opened = await this.#reopened(known);
    this.#previous = this.#now;
    this.#now = opened;
    this.#open = [...this.#open.slice(-1), opened.info.sessionId];
    return true;
  }

  /** The session as it is now, unless somebody has ended it: then it is the host's to clear the model's context. */
  async #renewable(): Promise<Session | undefined> {
    const found = await unlessGone(this.#host.getSession({ sessionId: this.info.sessionId }));
    const session = found?.session;
    const { taint, integrity } = this.info; // lower now only if the server was set back to before a raise
    const isLower = session && (session.taint < taint || session.integrity > integrity);
    return session && (hasEnded(session) || isLower) ? undefined : session;
  }

  /** Never without a taint: the conversation may have been reset meanwhile. */
  async #reopened({ agentId, conversationId, taint, integrity, readOnly }: Session): Promise<Opened> {
    const opening: Opening = { agentId, conversationId, taint, integrity, readOnly, ttl: this.#ttl };
    for (let raises = 0; ; raises += 1) {
      try {
        return await timed(this.#host.openSession(opening));
      } catch (error) {
        if (!(error instanceof MunimentError && error.taint && raises < RAISES)) {
          throw error;
        }
        if (error.taint === opening.taint) {
          opening.integrity = Integrity.UNTRUSTED; // then it is this half that was raised
        }
        opening.taint = error.taint;
      }
    }
  }
}

/** What the host opens, with the time from before the call. */
async function timed(opened: Promise<{ token: string; session?: Session }>): Promise<Opened> {
  const begunMs = performance.now();
  const { token, session: info = create(SessionSchema) } = await opened;
  return { token: checked(token), info, dueMs: begunMs + USED * lengthMs(info) };
}

function lengthMs({ createTime, expireTime }: Session): number {
  return createTime && expireTime ? timestampMs(expireTime) - timestampMs(createTime) : Number.POSITIVE_INFINITY;
}

/** Whether somebody has closed or reset a session. One that has expired is closed at that time, or not at all. */
function hasEnded({ closeTime, expireTime }: Session): boolean {
  return closeTime !== undefined && !isSame(closeTime, expireTime);
}

function isSame(time: Timestamp, other: Timestamp | undefined): boolean {
  return time.seconds === other?.seconds && time.nanos === other.nanos;
}

/** What a call comes to. Undefined if there is no such session, or it is not open. */
async function unlessGone<Result>(call: Promise<Result>): Promise<Result | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof MunimentError && error.reason === "SESSION_NOT_FOUND") {
      return undefined;
    }
    throw error;
  }
}

/** What a renewal comes to, for a call that waits for it no longer than its deadline, and until it is aborted. */
async function within<Result>(renewal: Promise<Result>, deadline?: Deadline): Promise<Result> {
  if (!deadline) {
    return renewal;
  }
  const done = new AbortController();
  const signals = deadline.signal ? [deadline.signal, done.signal] : [done.signal];
  const end = pauseFor(deadline.leftMs(), AbortSignal.any(signals)).then(() => {
    throw new MunimentError(Code.DeadlineExceeded, "the deadline passed while the session was renewed");
  });
  try {
    return await Promise.race([renewal, end]);
  } finally {
    done.abort();
  }
}
