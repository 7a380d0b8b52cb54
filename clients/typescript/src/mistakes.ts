// Failures to connect: what is wrong, and what to do.

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

// What OpenSSL makes of bytes that are no TLS.
const NO_TLS = new Set([
  "ERR_SSL_HTTP_REQUEST",
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
  "ERR_SSL_UNKNOWN_PROTOCOL",
  "ERR_SSL_WRONG_VERSION_NUMBER",
]);

/** What Node's error about a connection to `address` means. Undefined: nothing more than it says. */
export function mistakeIn(cause: unknown, address: string): string | undefined {
  if (!(cause instanceof Error && "code" in cause && typeof cause.code === "string")) {
    return undefined;
  }
  const { code } = cause;
  if (code === "ECONNREFUSED" || code === "ENOENT") {
    return `nothing listens at ${address}: is the server running, and is this its address?`;
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return `the name in ${address} was not found: check the address`;
  }
  return inTls(cause, code, address);
}

/** What it means that a server has closed a connection without a byte of HTTP/2. */
export function expectsTls(address: string): string {
  return (
    `${address} closed the connection before it spoke HTTP/2: it seems to expect TLS: ` +
    "set the option `tls`, or MUNIMENT_TLS_CA to a file with its authority"
  );
}

function inTls(cause: Error, code: string, address: string): string | undefined {
  if (NO_TLS.has(code)) {
    return `${address} does not speak TLS: leave out the option \`tls\` and MUNIMENT_TLS_CA, or check the port`;
  }
  if (NO_AUTHORITY.has(code)) {
    return (
      `no authority that this client trusts has signed the certificate of ${address} (${cause.message}): ` +
      "give the server's authority as `tls.ca`, or its file as MUNIMENT_TLS_CA"
    );
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `the certificate of ${address} is not for this name, but for ${namesIn(cause)}: use such a name in the address`;
  }
  return undefined;
}

/** The names in the certificate that Node has refused. */
function namesIn(refusal: Error & { readonly cert?: { readonly subjectaltname?: string } }): string {
  return refusal.cert?.subjectaltname ?? "none";
}
