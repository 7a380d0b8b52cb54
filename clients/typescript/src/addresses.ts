// Addresses of servers.

import { BlockList, isIP } from "node:net";

/** A host and a port. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

const URL_LIKE = /^(?<scheme>[A-Za-z][A-Za-z0-9+.-]*:\/\/)(?:[^/@]*@)?(?<rest>[^/?#]*)/;
const PLACE = /^(?:\[(?<ipv6>[0-9A-Fa-f:]+)\]|(?<name>[A-Za-z0-9.-]+))(?::(?<port>[0-9]+))?$/;

/** What to do if a server expects TLS: the end of a message. */
export const TURN_ON = "turn TLS on by the option `tls` or MUNIMENT_TLS_CA";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * The place that an address names.
 *
 * @throws TypeError if it is malformed. The message repeats only parts that cannot be a credential.
 */
export function placeOf(address: string): Place {
  const url = URL_LIKE.exec(address)?.groups;
  if (url) {
    throw new TypeError(hasScheme(url.scheme ?? "", url.rest ?? ""));
  }
  const found = PLACE.exec(address)?.groups;
  if (!found) {
    throw new TypeError("an address is host:port or unix:/path");
  }
  if (found.port === undefined) {
    throw new TypeError(`${address} has no port: give host:port, such as ${address}:50051, or unix:/path`);
  }
  const port = Number(found.port);
  if (port < 1 || port > 65_535) {
    throw new TypeError(`a port is a number from 1 to 65535, and not ${found.port}`);
  }
  return { host: found.ipv6 ?? found.name ?? "", port };
}

function hasScheme(scheme: string, rest: string): string {
  const remedy = `give host:port alone, such as ${rest}`;
  return `an address has no scheme such as ${scheme}: ${remedy}${/s:/i.test(scheme) ? `, and ${TURN_ON}` : ""}`;
}

/** Whether what is sent there stays on this machine. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version ? LOOPBACK.check(host, version === 6 ? "ipv6" : "ipv4") : host.toLowerCase() === "localhost";
}
