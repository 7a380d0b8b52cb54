// A small server on Connect's own gRPC stack, to be told what to answer.

import { once } from "node:events";
import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";

/** A server, until it is disposed of. */
export class Fake implements AsyncDisposable {
  readonly #server: Http2Server;
  /** The connections that were made, oldest first. */
  readonly connections: ServerHttp2Session[] = [];
  readonly sockets: Socket[] = [];

  private constructor(routes: (router: ConnectRouter) => void) {
    this.#server = createServer(connectNodeAdapter({ routes }));
    this.#server.on("connection", (socket) => this.sockets.push(socket));
    this.#server.on("session", (session) => this.connections.push(session));
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

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.connections) {
      connection.destroy();
    }
    await new Promise((closed) => this.#server.close(closed));
  }
}

/** A status as the server sends it. */
export function status<Desc extends DescMessage>(
  code: Code,
  reason: string,
  message: string,
  detail?: { desc: Desc; value: MessageInitShape<Desc> },
  metadata: Record<string, string> = {},
): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: "muniment.v1", metadata } };
  return new ConnectError(message, code, undefined, detail ? [info, detail] : [info]);
}
