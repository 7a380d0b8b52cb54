// A conversation that goes on for as long as its host wants.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient } from "@connectrpc/connect";
import type { Calls } from "./calls.js";
import type { Classification, Integrity } from "./gen/muniment/v1/classification_pb.js";
import { type Session, SessionSchema } from "./gen/muniment/v1/session_pb.js";
import { type OpenSessionRequestSchema, SessionService } from "./gen/muniment/v1/session_service_pb.js";
import { Renewals } from "./renewals.js";
import { OpenedSession } from "./session.js";

type Opening = MessageInitShape<typeof OpenSessionRequestSchema>;

/** How a conversation is opened. */
export interface ConversationOptions {
  /** The level of what it has seen so far. The default is the one that it has, or PUBLIC if it is new. */
  readonly taint?: Classification;
  /** TRUSTED if it has seen nothing but what the host vouches for. The default is UNTRUSTED. */
  readonly integrity?: Integrity;
  /** Whether its session may only read. */
  readonly readOnly?: boolean;
  /** How long its session stays valid without a call: 1 second to 30 days. The default is 24 hours. */
  readonly ttl?: NonNullable<Opening["ttl"]>;
}

/**
 * A session that its host renews: before a call, if less than a quarter of its time is left, and when it has expired.
 *
 * Once it has been closed or reset, it is never renewed: calls fail with `CREDENTIAL_INVALID`, or `CREDENTIAL_EXPIRED`
 * if it had expired before.
 */
export class Conversation extends OpenedSession {
  readonly #host: Calls;
  readonly #sessions: Client<typeof SessionService>;
  readonly #renewals: Renewals;

  private constructor(host: Calls, token: string, renewals: Renewals) {
    super(host.withCredential(token, renewals), renewals.info);
    this.#host = host;
    this.#sessions = createClient(SessionService, host);
    this.#renewals = renewals;
  }

  /** Made by a `HostClient`. */
  static open(host: Calls, opening: Opening): Promise<Conversation> {
    return Conversation.#begun(host, (sessions) => sessions.openSession(opening));
  }

  static async #begun(
    host: Calls,
    open: (sessions: Client<typeof SessionService>) => Promise<{ token: string; session?: Session }>,
  ): Promise<Conversation> {
    const sessions = createClient(SessionService, host);
    const begunMs = performance.now();
    const { token, session = create(SessionSchema) } = await open(sessions);
    return new Conversation(host, token, new Renewals(sessions, session, begunMs));
  }

  /** The session as it was opened, renewed or raised by this client. Another host may have raised it since. */
  override get info(): Session {
    return this.#renewals.info;
  }

  /**
   * Raise the taint of the conversation. Reveal to the model only after it has returned.
   *
   * The reason is for the audit log, and must not contain content.
   */
  async raiseTaint(taint: Classification, reason = "", options?: CallOptions): Promise<void> {
    await this.#renewals.fresh();
    const { session } = await this.#sessions.raiseTaint({ sessionId: this.info.sessionId, taint, reason }, options);
    this.#renewals.info = session ?? this.info;
  }

  /**
   * Start the conversation anew, at PUBLIC, as another client. By this call the host states that it has wiped the
   * model's context. This client is over: its calls fail.
   */
  async reset(reason = "", options?: CallOptions): Promise<Conversation> {
    await this.#renewals.fresh();
    const { sessionId } = this.info;
    return Conversation.#begun(this.#host, (sessions) => sessions.resetSession({ sessionId, reason }, options));
  }
}
