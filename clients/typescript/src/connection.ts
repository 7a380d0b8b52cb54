// Connections: where the server is, and who may listen on the way.

import { connect as connectSocket, type Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { ConnectError, Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { isLoopback, type Place, placeOf } from "./addresses.js";
import { isConnectionLost } from "./errors.js";
import { Listener } from "./listener.js";
import { type Explanation, mistakeIn, passing, silence } from "./mistakes.js";
import { Pool } from "./pool.js";

/**
 * Whom to trust, and whom to be: PEM, as `node:tls` takes it.
 *
 * Without `ca` the authorities that Node trusts are trusted. With `cert` and `key` the server can tell who calls.
 */
export type TlsOptions = Pick<SecureContextOptions, "ca" | "cert" | "key">;

/** Up to four HTTP/2 connections. Each is made when it is first used, and again when it was lost. */
export interface Connection {
  readonly transport: Transport;
  /** Why a call found no server, and what to do. Undefined if it found one, or the cause is unknown. */
  explain(failure: ConnectError): Promise<Explanation | undefined>;
  close(): void;
}

const CONNECTIONS = 4;

/** The length of the head of an HTTP/2 frame, with which a server without TLS begins. One with TLS sends less. */
const FRAME_HEAD_BYTES = 9;

/** A connection to `host:port` or `unix:/path`. */
export function openConnection(address: string, tls: boolean | TlsOptions): Connection {
  return address.startsWith("unix:") ? overSocket(address, tls) : overNetwork(address, tls);
}

function overSocket(address: string, tls: boolean | TlsOptions): Connection {
  if (tls) {
    throw new TypeError("a unix socket has no TLS: leave out the option `tls`");
  }
  return inTheClear("http://localhost", address, undefined);
}

function overNetwork(address: string, tls: boolean | TlsOptions): Connection {
  const place = placeOf(address);
  if (tls) {
    return http2Connection(`https://${address}`, address, tls === true ? {} : tls);
  }
  if (!isLoopback(place.host)) {
    throw new TypeError(
      "without tls only a loopback address or a unix socket will do: " +
        "the credential would cross a network in the clear",
    );
  }
  return inTheClear(`http://${address}`, address, place);
}

/** A connection without TLS. `place` is undefined if the address is that of a unix socket. */
function inTheClear(baseUrl: string, address: string, place: Place | undefined): Connection {
  let last: Socket | undefined;
  const createConnection = () => {
    last = place ? connectSocket(place.port, place.host) : connectSocket(address.slice("unix:".length));
    return last;
  };
  return http2Connection(baseUrl, address, { createConnection }, async (failure) =>
    last && wasSilent(last) ? silence(address, place) : broken(failure, address),
  );
}

/** Whether a connection that was made has ended before the server began to speak HTTP/2. */
function wasSilent(socket: Socket): boolean {
  return socket.destroyed && socket.bytesWritten > 0 && socket.bytesRead < FRAME_HEAD_BYTES;
}

type Http2Options = ConstructorParameters<typeof Http2SessionManager>[2];

function http2Connection(
  baseUrl: string,
  address: string,
  options: Http2Options,
  lost: (failure: ConnectError) => Promise<Explanation> = async (failure) => broken(failure, address),
): Connection {
  const managers = Array.from({ length: CONNECTIONS }, () => new Http2SessionManager(baseUrl, undefined, options));
  const transports = managers.map((manager) => createGrpcTransport({ baseUrl, sessionManager: new Listener(manager) }));
  return {
    transport: new Pool(transports),
    explain: async (failure) =>
      mistakeIn(failure.cause, address) ?? (isConnectionLost(failure) ? lost(failure) : undefined),
    close: () => {
      for (const manager of managers) {
        manager.abort();
      }
    },
  };
}

function broken(failure: ConnectError, address: string): Explanation {
  return passing(`the connection to ${address} broke: ${failure.rawMessage}`);
}
