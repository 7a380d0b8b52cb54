// Connections: where the server is, and who may listen on the way.

import { BlockList, connect as connectSocket, isIP } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
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
  close(): void;
}

const HOST_AND_PORT = /^(?:\[(?<ipv6>[0-9A-Fa-f:]+)\]|(?<name>[A-Za-z0-9.-]+)):[0-9]+$/;

const CONNECTIONS = 4;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** A connection to `host:port` or `unix:/path`. */
export function openConnection(address: string, tls: boolean | TlsOptions): Connection {
  return address.startsWith("unix:") ? overSocket(address.slice("unix:".length), tls) : overNetwork(address, tls);
}

function overSocket(path: string, tls: boolean | TlsOptions): Connection {
  if (tls) {
    throw new TypeError("a unix socket has no TLS");
  }
  return http2Connection("http://localhost", { createConnection: () => connectSocket(path) });
}

function overNetwork(address: string, tls: boolean | TlsOptions): Connection {
  const host = HOST_AND_PORT.exec(address)?.groups;
  if (!host) {
    throw new TypeError("an address is host:port or unix:/path");
  }
  if (tls) {
    return http2Connection(`https://${address}`, tls === true ? {} : tls);
  }
  if (!isLoopback(host.ipv6 ?? host.name ?? "")) {
    throw new TypeError(
      "without tls only a loopback address or a unix socket will do: " +
        "the credential would cross a network in the clear",
    );
  }
  return http2Connection(`http://${address}`, {});
}

type Http2Options = ConstructorParameters<typeof Http2SessionManager>[2];

function http2Connection(baseUrl: string, options: Http2Options): Connection {
  const managers = Array.from({ length: CONNECTIONS }, () => new Http2SessionManager(baseUrl, undefined, options));
  return {
    transport: new Pool(managers.map((sessionManager) => createGrpcTransport({ baseUrl, sessionManager }))),
    close: () => {
      for (const manager of managers) {
        manager.abort();
      }
    },
  };
}

function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version ? LOOPBACK.check(host, version === 6 ? "ipv6" : "ipv4") : host.toLowerCase() === "localhost";
}
