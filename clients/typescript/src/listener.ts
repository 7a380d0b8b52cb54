// Whether anyone is at the other end of a connection.

import type { ClientHttp2Stream, Http2Session } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Http2SessionManager } from "@connectrpc/connect-node";

const SILENCE_MS = 10_000;
type Manager = Pick<Http2SessionManager, "authority" | "request" | "notifyResponseByteRead">;

/**
 * A connection that has fallen silent during a call is asked whether anyone is there, and given up without an answer.
 *
 * The pings of connect-node will not do: each call begins their pause anew, and a call that ends while one is out lets
 * all later calls wait for it.
 */
export class Listener implements Manager {
  readonly #manager: Manager;
  readonly #listening = new WeakMap<Http2Session, NodeJS.Timeout>();

  constructor(manager: Manager) {
    this.#manager = manager;
  }

  get authority(): string {
    return this.#manager.authority;
  }

  async request(...call: Parameters<Manager["request"]>): Promise<ClientHttp2Stream> {
    const stream = await this.#manager.request(...call);
    const { session } = stream;
    if (session !== undefined) {
      this.#listen(session, stream);
      stream.once("response", () => this.#heard(session));
    }
    return stream;
  }

  notifyResponseByteRead(stream: ClientHttp2Stream): void {
    this.#manager.notifyResponseByteRead(stream);
  }

  /** Unless that is being done: the end of a call is no answer. */
  #listen(session: Http2Session, stream: ClientHttp2Stream): void {
    if (!this.#listening.has(session)) {
      this.#listening.set(session, setTimeout(() => this.#ask(session, stream), SILENCE_MS).unref());
    }
  }

  #ask(session: Http2Session, stream: ClientHttp2Stream): void {
    if (session.destroyed) {
      return;
    }
    this.#listening.set(session, setTimeout(() => giveUp(session), SILENCE_MS).unref());
    session.ping((failure) => {
      this.#heard(session);
      if (!failure && !stream.closed) {
        this.#listen(session, stream);
      }
    });
  }

  #heard(session: Http2Session): void {
    clearTimeout(this.#listening.get(session));
    this.#listening.delete(session);
  }
}

/** Its calls fail, and the next makes a new connection. */
function giveUp(session: Http2Session): void {
  session.once("error", () => {}); // the manager may have turned to a new one, and Node throws what nobody listens to
  session.destroy(new ConnectError("the server does not answer", Code.Unavailable));
}
