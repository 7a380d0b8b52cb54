// Sessions that their host renews in time.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { Deadline, Renewal } from "./calls.js";
import { MunimentError } from "./errors.js";
import type { Session } from "./gen/muniment/v1/session_pb.js";
import type { SessionService } from "./gen/muniment/v1/session_service_pb.js";

/** The part of its time after which a session is renewed. */
const USED = 0.75;
/** The part of its time after which a renewal that has failed, or is still under way, is tried again. */
const AGAIN = 0.05;

/** Renews a session before it expires, or when the server says that it has. */
export class Renewals implements Renewal {
  /** The session as this client has last seen it. */
  info: Session;
  readonly #host: Client<typeof SessionService>;
  readonly #lengthMs: number;
  #dueMs: number;

  /** Of a session that a call has opened which began at a time of the monotonic clock. */
  constructor(host: Client<typeof SessionService>, info: Session, begunMs: number) {
    const { createTime, expireTime } = info;
    this.#host = host;
    this.info = info;
    this.#lengthMs = createTime && expireTime ? timestampMs(expireTime) - timestampMs(createTime) : 0;
    this.#dueMs = begunMs + USED * this.#lengthMs;
  }

  /** A failure is left to a later call: the token is valid for a while yet. */
  async fresh(deadline?: Deadline): Promise<void> {
    const now = performance.now();
    if (now >= this.#dueMs) {
      this.#dueMs = now + AGAIN * this.#lengthMs;
      await this.#renew(deadline).catch(() => undefined);
    }
  }

  async renewed({ reasonName }: MunimentError, deadline: Deadline): Promise<boolean> {
    if (reasonName !== "CREDENTIAL_EXPIRED") {
      return false;
    }
    try {
      await this.#renew(deadline);
      return true;
    } catch (error) {
      if (error instanceof MunimentError && error.reason === "SESSION_NOT_FOUND") {
        return false; // somebody has ended it: it is for the host to clear the model's context
      }
      throw error;
    }
  }

  async #renew(deadline?: Deadline): Promise<void> {
    const begunMs = performance.now();
    const { signal } = deadline ?? {};
    const options = deadline && { timeoutMs: deadline.leftMs(), ...(signal && { signal }) };
    const ttl = { seconds: BigInt(Math.trunc(this.#lengthMs / 1000)), nanos: (this.#lengthMs % 1000) * 1_000_000 };
    const { session } = await this.#host.renewSession({ sessionId: this.info.sessionId, ttl }, options);
    this.info = session ?? this.info;
    this.#dueMs = begunMs + USED * this.#lengthMs;
  }
}
