// A small server on Connect's own gRPC stack, to be told what to answer.

import { once } from "node:events";
import { constants, createServer, type Http2Server } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";

/** A server, until it is disposed of. */
export class Fake implements AsyncDisposable {
  /** How many calls are still to be refused unseen, as by a connection that the server closes because of its age. */
  refusals = 0;

  readonly #server: Http2Server;
  readonly #sockets: Socket[] = [];

  private constructor(routes: (router: ConnectRouter) => void) {
    const answer = connectNodeAdapter({ routes });
    this.#server = createServer((request, response) => {
      if (this.refusals > 0) {
        this.refusals -= 1;
        request.stream.close(constants.NGHTTP2_REFUSED_STREAM);
      } else {
        answer(request, response);
      }
    });
    this.#server.on("connection", (socket) => this.#sockets.push(socket));
  }

  /** Serve on a free port of loopback, or on a unix socket. */
  static async start(routes: (router: ConnectRouter) => void, path?: string): Promise<Fake> {
    const fake = new Fake(routes);
    fake.#server.listen(path ?? { host: "127.0.0.1", port: 0 });
    await once(fake.#server, "listening");
    return fake;
  }

  get address(): string {
    const bound = this.#server.address() as AddressInfo | string;
    return typeof bound === "string" ? `unix:${bound}` : `127.0.0.1:${bound.port}`;
  }

  /** How many connections there have been. */
  get connections(): number {
    return this.#sockets.length;
  }

  /** Break all connections: as a server does that is killed, or as one that is gone. */
  cut(how: "end" | "reset" = "end"): void {
    for (const socket of this.#sockets) {
      if (how === "reset") {
        socket.resetAndDestroy();
      } else {
        socket.destroy();
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((closed) => this.#server.close(closed));
  }
}

/** A status as the server sends it. */
export function status<Desc extends DescMessage>(
  code: Code,
  reason: string,
  detail?: { desc: Desc; value: MessageInitShape<Desc> },
  metadata: Record<string, string> = {},
  trailers?: Record<string, string>,
): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: "muniment.v1", metadata } };
  return new ConnectError("a text", code, trailers, detail ? [info, detail] : [info]);
}

/** What a call fails with. */
export async function failureOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (failure) {
    return failure;
  }
  throw new Error("the call did not fail");
}
