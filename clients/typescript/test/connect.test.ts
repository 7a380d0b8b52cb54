import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { connect, connectHost, connectSession, HostClient, SessionClient } from "../src/index.js";

const VARIABLES = ["MUNIMENT_ADDRESS", "MUNIMENT_HOST_KEY", "MUNIMENT_TOKEN", "MUNIMENT_TLS_CA"];

/** Run `body` with these variables of ours and no others. */
function withEnvironment<T>(variables: Record<string, string>, body: () => T): T {
  const before = Object.fromEntries(VARIABLES.map((name) => [name, process.env[name]]));
  for (const name of VARIABLES) {
    delete process.env[name];
  }
  Object.assign(process.env, variables);
  try {
    return body();
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) {
        delete process.env[name];
      } else {
        process.env[name] = value;
      }
    }
  }
}

test("without TLS only loopback addresses and unix sockets are allowed", () => {
  for (const address of [
    "localhost:1",
    "LOCALHOST:1",
    "127.0.0.1:1",
    "127.8.0.1:1",
    "[::1]:1",
    "[0:0::1]:1",
    "unix:/s",
  ]) {
    assert.ok(connect({ address, token: "t" }) instanceof SessionClient, address);
  }
  for (const address of [
    "db.example:1",
    "10.0.0.1:1",
    "[fe80::1]:1",
    "localhost.evil.example:1",
    "127.0.0.1.nip.io:1",
  ]) {
    assert.throws(() => connect({ address, token: "t" }), TypeError, address);
    assert.ok(connect({ address, token: "t", tls: true }) instanceof SessionClient, address);
  }
});

test("an address that is none is refused with what is wrong and what to do", () => {
  const refused = {
    "": /an address is needed/,
    localhost: /^localhost has no port: give host:port, such as localhost:50051, or unix:\/path$/,
    "[::1]": /^\[::1\] has no port: give host:port, such as \[::1\]:50051/,
    "http://localhost:1": /^an address has no scheme such as http:\/\/: give host:port alone, such as localhost:1$/,
    "https://ada:s3cret@localhost:1/v1": /such as localhost:1, and turn TLS on by the option `tls` or MUNIMENT_TLS_CA$/,
    "grpc://localhost:1": /no scheme such as grpc:\/\/: give host:port alone, such as localhost:1$/,
    "localhost:1/path": /^an address is host:port or unix:\/path$/,
    "user@localhost:1": /^an address is host:port/,
    "localhost:1#": /^an address is host:port/,
    "localhost:80000": /a port is a number from 1 to 65535, and not 80000/,
  };
  for (const [address, message] of Object.entries(refused)) {
    for (const tls of [true, false]) {
      assert.throws(() => connect({ address, token: "t", tls }), { name: "TypeError", message }, address);
    }
  }
  assert.throws(() => connect({ address: "unix:/s", token: "t", tls: true }), /leave out the option `tls`/);
});

test("exactly one credential is needed", () => {
  assert.throws(() => connect({ address: "localhost:1" }), TypeError);
  assert.throws(() => connect({ address: "localhost:1", token: "" }), TypeError);
  assert.throws(() => connect({ address: "localhost:1", hostKey: "h", token: "t" }), TypeError);
});

test("a credential that no header can carry is refused without being shown", () => {
  assert.throws(
    () => connect({ address: "localhost:1", token: "s3cret\n" }),
    (error) => error instanceof TypeError && !error.message.includes("s3cret"),
  );
});

test("the environment serves when neither address nor credential is given", () => {
  const host = { MUNIMENT_ADDRESS: "localhost:1", MUNIMENT_HOST_KEY: " h\n" };
  assert.ok(withEnvironment(host, () => connect()) instanceof HostClient);
  const session = { MUNIMENT_ADDRESS: "localhost:1", MUNIMENT_TOKEN: "t" };
  assert.ok(withEnvironment(session, () => connect({ timeoutMs: 5 })) instanceof SessionClient);
  assert.throws(() => withEnvironment({}, () => connect()), TypeError);
  assert.throws(() => withEnvironment(host, () => connect({ address: "localhost:2" })), TypeError);
  assert.ok(withEnvironment({ ...session, MUNIMENT_HOST_KEY: "" }, () => connect()) instanceof SessionClient);
});

test("with both credentials in the environment the host key is taken", () => {
  const both = { MUNIMENT_ADDRESS: "localhost:1", MUNIMENT_HOST_KEY: "h", MUNIMENT_TOKEN: "t" };
  assert.ok(withEnvironment(both, () => connect()) instanceof HostClient);
});

test("a function for each kind of client ignores the other's credential", () => {
  const both = { MUNIMENT_ADDRESS: "localhost:1", MUNIMENT_HOST_KEY: "h", MUNIMENT_TOKEN: "t" };
  const host: HostClient = withEnvironment(both, () => connectHost());
  const session: SessionClient = withEnvironment(both, () => connectSession({ timeoutMs: 5 }));
  assert.ok(host instanceof HostClient);
  assert.equal(session.token, "t");
  const { MUNIMENT_HOST_KEY: _, ...noKey } = both;
  assert.throws(() => withEnvironment(noKey, () => connectHost()), /set MUNIMENT_HOST_KEY and leave out the address/);
  assert.throws(() => withEnvironment({ ...both, MUNIMENT_TOKEN: "" }, () => connectSession()), /set MUNIMENT_TOKEN/);
  assert.throws(() => withEnvironment(both, () => connectSession({ address: "localhost:2" })), /credential is needed/);
  assert.equal(connectSession({ address: "localhost:2", token: "given" }).token, "given");
});

test("the environment may name an authority", () => {
  const ca = join(mkdtempSync(join(tmpdir(), "muniment-")), "ca.pem");
  writeFileSync(ca, "-----BEGIN CERTIFICATE-----");
  const named = { MUNIMENT_ADDRESS: "db.example:1", MUNIMENT_TOKEN: "t", MUNIMENT_TLS_CA: `${ca}\n` };
  assert.ok(withEnvironment(named, () => connect()) instanceof SessionClient);
  assert.throws(() => withEnvironment(named, () => connect({ tls: false })), TypeError);
  assert.throws(() => withEnvironment({ ...named, MUNIMENT_TLS_CA: `${ca}.none` }, () => connect()), {
    code: "ENOENT",
  });
  writeFileSync(ca, "-----BEGIN PRIVATE KEY-----");
  assert.throws(
    () => withEnvironment(named, () => connect()),
    /ca\.pem holds no certificate in PEM: see MUNIMENT_TLS_CA/,
  );
  const { MUNIMENT_ADDRESS: address, MUNIMENT_TOKEN: token } = named;
  assert.throws(() => withEnvironment(named, () => connect({ address, token })), TypeError);
});

test("no client shows its credential", () => {
  const host = connect({ address: "localhost:1", hostKey: "s3cret" });
  const session = host.session("s3cret");
  for (const client of [host, session]) {
    const shown = inspect(client, { depth: null, showHidden: true, getters: false }) + JSON.stringify(client) + client;
    assert.ok(!shown.includes("s3cret"), shown);
  }
  assert.equal(session.token, "s3cret");
});
