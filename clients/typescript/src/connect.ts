// The way in.

import { readFileSync } from "node:fs";
import { Calls } from "./calls.js";
import { type Connection, openConnection, type TlsOptions } from "./connection.js";
import { HostClient } from "./host.js";
import { SessionClient } from "./session.js";

const ONE_CREDENTIAL =
  "exactly one credential is needed: give a host key or a session's token, or set MUNIMENT_HOST_KEY or MUNIMENT_TOKEN and leave out the address too";

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
  readonly address?: string | undefined;
  readonly credential?: string | undefined;
  readonly tls?: boolean | TlsOptions | undefined;
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
  const { address, hostKey, token } = options;
  const isGiven = address !== undefined || hostKey !== undefined || token !== undefined;
  const host = isGiven ? hostKey : variable("MUNIMENT_HOST_KEY");
  const session = isGiven ? token : variable("MUNIMENT_TOKEN");
  if (!(host || session) || (isGiven && host && session)) {
    throw new TypeError(ONE_CREDENTIAL);
  }
  // A program that has both set is a host that has opened a session.
  return host ? connectHost(options) : connectSession(options);
}

/**
 * A client for the holder of a host key: as `connect`, but a session's token in the environment is ignored.
 *
 * @throws as `connect` does.
 */
export function connectHost({ hostKey, ...options }: Omit<ClientOptions, "token"> = {}): HostClient {
  return new HostClient(...opened(options, hostKey, "MUNIMENT_HOST_KEY"));
}

/**
 * A client for the holder of a session's token: as `connect`, but a host key in the environment is ignored.
 *
 * @throws as `connect` does.
 */
export function connectSession({ token, ...options }: Omit<ClientOptions, "hostKey"> = {}): SessionClient {
  return new SessionClient(...opened(options, token, "MUNIMENT_TOKEN"));
}

function opened(options: ClientOptions, given: string | undefined, name: string): [Calls, Connection] {
  const { timeoutMs = 10_000, retries = true } = options;
  const {
    address,
    credential,
    tls = false,
  }: Settings = options.address === undefined && given === undefined
    ? environment(options, name)
    : { ...options, credential: given };
  if (!address) {
    throw new TypeError("an address is needed: give one, or set MUNIMENT_ADDRESS and leave out the credential too");
  }
  if (!credential) {
    throw new TypeError(`a credential is needed: give one, or set ${name} and leave out the address too`);
  }
  const connection = openConnection(address, tls);
  return [new Calls(connection, credential, { timeoutMs, retries }), connection];
}

function environment(options: ClientOptions, name: string): Settings {
  const ca = variable("MUNIMENT_TLS_CA");
  return {
    tls: options.tls ?? (ca ? { ca: authority(ca) } : undefined),
    address: variable("MUNIMENT_ADDRESS"),
    credential: variable(name),
  };
}

function variable(name: string): string | undefined {
  return process.env[name]?.trim();
}

function authority(file: string): Buffer {
  const pem = readFileSync(file);
  if (!/-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----/.test(pem.toString("latin1"))) {
    // Node.js would trust nobody, and every call would fail as if the server had another authority.
    throw new TypeError(`${file} holds no certificate in PEM: see MUNIMENT_TLS_CA`);
  }
  return pem;
}
