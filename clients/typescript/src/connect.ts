// The way in.

import { readFileSync } from "node:fs";
import { Calls } from "./calls.js";
import { openConnection, type TlsOptions } from "./connection.js";
import { fixed } from "./credentials.js";
import { HostClient } from "./host.js";
import { SessionClient } from "./session.js";

/** Where the server is, who calls, and how. */
export interface ClientOptions {
  /** `host:port`, `[ipv6]:port` or `unix:/path`, without a scheme. */
  readonly address?: string;
  /** The credential of a host. */
  readonly hostKey?: string;
  /** The credential of a session. */
  readonly token?: string;
  /**
   * Whether to encrypt, and whom to trust.
   *
   * The default is not to: then only loopback addresses and unix sockets are allowed. But where the address comes
   * from the environment and `MUNIMENT_TLS_CA` names a file of PEM, the default is to trust the authorities in it.
   */
  readonly tls?: boolean | TlsOptions;
  /**
   * Milliseconds that a call may take in all, attempts and pauses together. A call may name its own.
   *
   * The default is 10,000; the most is a day.
   */
  readonly timeoutMs?: number;
  /**
   * Whether calls are made again until their deadline, where that is safe.
   *
   * The default is true.
   */
  readonly retries?: boolean;
}

interface Settings {
  readonly address: string;
  readonly hostKey: string;
  readonly token: string;
  readonly tls: boolean | TlsOptions;
}

/**
 * A client for the holder of a host key, or of a session's token. Nothing is sent before the first call.
 *
 * With neither address nor credential both come from the environment: `MUNIMENT_ADDRESS` with `MUNIMENT_HOST_KEY` or,
 * if that is not set, `MUNIMENT_TOKEN`, and with `MUNIMENT_TLS_CA`. They always come from one place: a key is never
 * sent to a server it is not for.
 *
 * @throws TypeError if the address is malformed, if there is not exactly one credential, if it would leave this machine
 * without TLS, or if the file of `MUNIMENT_TLS_CA` holds no certificate; what `node:fs` throws if it cannot be read.
 */
export function connect(options: ClientOptions & { readonly address: string; readonly hostKey: string }): HostClient;
export function connect(options: ClientOptions & { readonly address: string; readonly token: string }): SessionClient;
export function connect(options?: ClientOptions): HostClient | SessionClient;
export function connect(options: ClientOptions = {}): HostClient | SessionClient {
  const { timeoutMs = 10_000, retries = true } = options;
  const { address, hostKey, token, tls } = settings(options);
  const connection = openConnection(address, tls);
  const calls = new Calls(connection, fixed(hostKey || token), { timeoutMs, retries });
  return hostKey ? new HostClient(calls, connection) : new SessionClient(calls, connection);
}

function settings(options: ClientOptions): Settings {
  const given = options.address !== undefined || options.hostKey !== undefined || options.token !== undefined;
  const { address = "", hostKey = "", token = "", tls = false } = given ? options : environment(options);
  if (!address) {
    throw new TypeError("an address is needed: give one, or set MUNIMENT_ADDRESS and leave out the credential too");
  }
  if (Boolean(hostKey) === Boolean(token)) {
    throw new TypeError(
      "exactly one credential is needed: give a host key or a session's token, or set MUNIMENT_HOST_KEY or MUNIMENT_TOKEN and leave out the address too",
    );
  }
  return { address, hostKey, token, tls };
}

function environment(options: ClientOptions): ClientOptions {
  const ca = process.env.MUNIMENT_TLS_CA?.trim();
  const hostKey = process.env.MUNIMENT_HOST_KEY?.trim();
  return {
    tls: options.tls ?? (ca ? { ca: authority(ca) } : undefined),
    address: process.env.MUNIMENT_ADDRESS?.trim(),
    // A program that has both set is a host that has opened a session.
    ...(hostKey ? { hostKey } : { token: process.env.MUNIMENT_TOKEN?.trim() }),
  };
}

function authority(file: string): Buffer {
  const pem = readFileSync(file);
  if (!/-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----/.test(pem.toString("latin1"))) {
    // Node.js would trust nobody, and every call would fail as if the server had another authority.
    throw new TypeError(`${file} holds no certificate in PEM: see MUNIMENT_TLS_CA`);
  }
  return pem;
}
