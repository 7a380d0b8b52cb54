// Failures to connect: what is wrong, and what to do.

import { TURN_ON } from "./addresses.js";

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

/** What Node's error about a connection to `address` means. Undefined if there is nothing to add to its message. */
export function mistakeIn(cause: unknown, address: string): string | undefined {
  if (!(cause instanceof Error && "code" in cause && typeof cause.code === "string")) {
    return undefined;
  }
  const { code } = cause;
  if (code === "ECONNREFUSED" || code === "ENOENT") {
    return `no connection to ${address}: nothing listens there: is the server running, and is this its address?`;
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return `no connection to ${address}: its name was not found: check the address`;
  }
  return inTls(cause, code, address);
}

/** What it means that a server has closed a connection without a byte of HTTP/2. */
export function expectsTls(address: string): string {
  return `the server at ${address} closed the connection without an answer, as one that expects TLS does: ${TURN_ON}`;
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
  return undefined;
}

/** The names in a certificate that Node has refused, which has them as `DNS:db.example, IP Address:10.0.0.1`. */
function namesIn(refusal: Error & { readonly cert?: { readonly subjectaltname?: string } }): string {
  return (refusal.cert?.subjectaltname ?? "").replace(/\b(DNS|IP Address):/g, "");
}
