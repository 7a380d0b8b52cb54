// Addresses: where a server may be.

import { BlockList, isIP } from "node:net";

/** A host and a port. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:\/\//;
const PLACE = /^(?:\[(?<ipv6>[0-9A-Fa-f:]+)\]|(?<name>[A-Za-z0-9.-]+))(?::(?<port>[0-9]+))?$/;
const FORM = "give HOST:PORT, such as 127.0.0.1:50051, or unix:PATH";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * The place that an address names.
 *
 * @throws TypeError what is wrong with it. Only what cannot be a credential is repeated.
 */
export function placeOf(address: string): Place {
  const scheme = SCHEME.exec(address)?.[0];
  if (scheme) {
    throw new TypeError(`an address has no scheme: leave out ${scheme}, and ${FORM}; TLS is the option \`tls\``);
  }
  const found = PLACE.exec(address)?.groups;
  if (!found) {
    throw new TypeError(`the address is not understood: ${FORM}`);
  }
  if (found.port === undefined) {
    throw new TypeError(`${address} has no port: ${FORM}`);
  }
  const port = Number(found.port);
  if (port < 1 || port > 65_535) {
    throw new TypeError(`a port is a number from 1 to 65535, and not ${found.port}`);
  }
  return { host: found.ipv6 ?? found.name ?? "", port };
}

/** Whether what is sent there stays on this machine. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version ? LOOPBACK.check(host, version === 6 ? "ipv6" : "ipv4") : host.toLowerCase() === "localhost";
}
