// Failures to connect: what is wrong, and what to do.

import { once } from "node:events";
import { connect } from "node:tls";
import { type Place, TURN_ON } from "./addresses.js";

/** How long a server may take for a TLS handshake, when it is asked whether it speaks TLS. */
const LONGEST_MS = 2_000;

const NO_AUTHORITY = new Set([
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "INVALID_CA",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

// OpenSSL's errors for bytes that are not TLS.
const NO_TLS = new Set([
  "ERR_SSL_HTTP_REQUEST",
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
  "ERR_SSL_UNKNOWN_PROTOCOL",
  "ERR_SSL_WRONG_VERSION_NUMBER",
]);

/** Why a call found no server. */
export interface Explanation {
  readonly text: string;
  /** Whether another attempt would fail for the same reason. */
  readonly lasts: boolean;
}

/** What Node's error about a connection to `address` means. Undefined if there is nothing to add to its message. */
export function mistakeIn(cause: unknown, address: string): Explanation | undefined {
  if (!(cause instanceof Error && "code" in cause && typeof cause.code === "string")) {
    return undefined;
  }
  const { code } = cause;
  if (code === "ECONNREFUSED" || code === "ENOENT") {
    const question = "is the server running, and is this its address?";
    return passing(`no connection to ${address}: nothing listens there: ${question}`);
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return passing(`no connection to ${address}: its name was not found: check the address`);
  }
  const text = inTls(cause, code, address);
  return text === undefined ? undefined : { text, lasts: true };
}

/** An explanation after which another attempt may succeed. */
export function passing(text: string): Explanation {
  return { text, lasts: false };
}

/** Why a server has closed a connection without a byte of HTTP/2. */
export async function silence(address: string, place: Place | undefined): Promise<Explanation> {
  return place && (await speaksTls(place))
    ? { text: `the server at ${address} expects TLS: ${TURN_ON}`, lasts: true }
    : passing(`the server at ${address} closed the connection without an answer`);
}

/** Whether a server completes a TLS handshake. Nothing else is sent to it. */
async function speaksTls({ host, port }: Place): Promise<boolean> {
  const socket = connect({ host, port, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  try {
    await once(socket, "secureConnect", { signal: AbortSignal.timeout(LONGEST_MS) });
    return true;
  } catch {
    return false;
  } finally {
    socket.on("error", () => {}).destroy();
  }
}

function inTls(cause: Error, code: string, address: string): string | undefined {
  if (NO_TLS.has(code)) {
    return (
      `the server at ${address} does not speak TLS: connect without the option \`tls\` and MUNIMENT_TLS_CA, ` +
      "which is possible on its own machine, or give the server a certificate"
    );
  }
  if (NO_AUTHORITY.has(code)) {
    return (
      `the certificate of ${address} is signed by an authority that is not trusted: ` +
      "name its authority by `tls.ca` or MUNIMENT_TLS_CA"
    );
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `the certificate of ${address} is for other names: connect to one of ${namesIn(cause)}`;
  }
  return code.startsWith("CERT_")
    ? `the certificate of ${address} is not accepted: give the server another one (${cause.message})`
    : undefined;
}

/** The names in a certificate that Node has refused, which has them as `DNS:db.example, IP Address:10.0.0.1`. */
function namesIn(refusal: Error & { readonly cert?: { readonly subjectaltname?: string } }): string {
  return (refusal.cert?.subjectaltname ?? "").replace(/\b(DNS|IP Address):/g, "");
}
