// A conversation that goes on for as long as its host wants.

import { type CallOptions, createClient } from "@connectrpc/connect";
import type { Calls } from "./calls.js";
import type { Classification, Integrity } from "./gen/muniment/v1/classification_pb.js";
import type { Session } from "./gen/muniment/v1/session_pb.js";
import { SessionService } from "./gen/muniment/v1/session_service_pb.js";
import { type Opening, Renewals } from "./renewals.js";
import { OpenedSession } from "./session.js";

/** How a conversation is opened. */
export interface ConversationOptions {
  /** The level of what it has seen so far. The default is the one that it has, or PUBLIC if it is new. */
  readonly taint?: Classification;
  /** TRUSTED if it has seen nothing but what the host vouches for. The default is UNTRUSTED. */
  readonly integrity?: Integrity;
  /** Whether its sessions may only read. */
  readonly readOnly?: boolean;
  /** How long each of its sessions stays valid: 1 second to 30 days. The default is 24 hours. */
  readonly ttl?: NonNullable<Opening["ttl"]>;
}

/**
 * A session that its host opens again in the same conversation: before a call, if less than a quarter of its time is
 * left, and when it has expired. Its `token` and its `info` are then those of the new one.
 *
 * Once it has been closed or reset, it is never opened again: calls fail with `CREDENTIAL_INVALID`, or
 * `CREDENTIAL_EXPIRED` if it had expired before.
 */
export class Conversation extends OpenedSession {
  readonly #host: Calls;
  readonly #renewals: Renewals;

  private constructor(host: Calls, renewals: Renewals) {
    super(host.withCredential(renewals), renewals.info);
    this.#host = host;
    this.#renewals = renewals;
  }

  /** Made by a `HostClient`. */
  static async open(host: Calls, opening: Opening): Promise<Conversation> {
    return new Conversation(host, await Renewals.open(createClient(SessionService, host), opening));
  }

  /** The session as it was when it was opened, or raised by this client. Another host may have raised it since. */
  override get info(): Session {
    return this.#renewals.info;
  }

  /**
   * Raise the taint of the conversation. Reveal to the model only after it has returned.
   *
   * The reason is for the audit log, and must not contain content.
   */
  raiseTaint(taint: Classification, reason = "", options?: CallOptions): Promise<void> {
    return this.#renewals.raiseTaint({ taint, reason }, options);
  }

  /**
   * Start the conversation anew, at PUBLIC, as another client. By this call the host states that it has wiped the
   * model's context. This client is over: its calls fail.
   */
  async reset(reason = "", options?: CallOptions): Promise<Conversation> {
    return new Conversation(this.#host, await this.#renewals.reset({ reason }, options));
  }

  /** Close the session, and the one before the last renewal. It is no error if they have ended already. */
  override close(): Promise<void> {
    return this.#renewals.close();
  }
}
