// Certificates made by openssl.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A certificate and its key, both as PEM. */
export interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

const FOLDER = mkdtempSync(join(tmpdir(), "muniment-"));
const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];

/** An authority. */
export function authority(name: string): Pair {
  return made(name, ["-addext", "basicConstraints=critical,CA:TRUE"]);
}

/** The certificate of a server, such as for `IP:127.0.0.1`, signed by the authority of that name. */
export function signed(name: string, by: string, alternative: string): Pair {
  const authority = ["-CA", join(FOLDER, `${by}.pem`), "-CAkey", join(FOLDER, `${by}.key`)];
  return made(name, [...authority, "-addext", `subjectAltName=${alternative}`]);
}

function made(name: string, options: readonly string[]): Pair {
  const files = { cert: join(FOLDER, `${name}.pem`), key: join(FOLDER, `${name}.key`) };
  const out = ["-subj", `/CN=${name}`, "-keyout", files.key, "-out", files.cert];
  execFileSync("openssl", ["req", "-x509", ...KEY, ...out, ...options], { stdio: "pipe" });
  return { cert: readFileSync(files.cert), key: readFileSync(files.key) };
}
