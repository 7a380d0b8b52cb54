import assert from "node:assert/strict";
import { once } from "node:events";
import { createSecureServer, createServer } from "node:http2";
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { Code, connect, MunimentError, type TlsOptions } from "../src/index.js";
import { mistakeIn } from "../src/mistakes.js";
import { authority, type Pair, signed } from "./certificates.js";
import { failureOf } from "./fake.js";

const OURS = authority("ours");
const OTHERS = authority("others");
const HERE = signed("here", "ours", "IP:127.0.0.1");
const ELSEWHERE = signed("elsewhere", "ours", "DNS:db.example,IP:10.0.0.1");

/** A listener, until it is disposed of. */
async function listening(server: Server) {
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => sockets.push(socket));
  server.listen({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async () => {
    for (const socket of sockets) {
      socket.destroy();
    }
    await new Promise((closed) => server.close(closed));
  };
  return { address, [Symbol.asyncDispose]: close };
}

function overTls(pair: Pair) {
  const server = createSecureServer({ cert: pair.cert, key: pair.key });
  server.on("sessionError", () => {}).on("tlsClientError", () => {});
  return listening(server);
}

const DAY_MS = 86_400_000;

/** What a call fails with that is retried until its deadline. With that of a day, the test would time out. */
async function failed(address: string, timeoutMs: number, tls?: TlsOptions): Promise<MunimentError> {
  const host = connect({ address, hostKey: "s3cret", ...(tls ? { tls } : {}), timeoutMs });
  const error = await failureOf(host.agents.listAgents({}));
  host.disconnect();
  assert.ok(error instanceof MunimentError);
  assert.ok(!error.message.includes("s3cret"));
  return error;
}

/** What a call fails with at once. */
async function mistake(address: string, tls?: TlsOptions): Promise<string> {
  const error = await failed(address, DAY_MS, tls);
  assert.equal(error.message, `UNAVAILABLE: ${error.rawMessage}`);
  return error.rawMessage;
}

/** What a call fails with after it was retried. */
async function lastMistake(address: string, tls?: TlsOptions): Promise<string> {
  const error = await failed(address, 500, tls);
  assert.equal(error.code, Code.Unavailable);
  return error.rawMessage;
}

test("a client without TLS at a port with TLS", async () => {
  await using server = await overTls(HERE);
  assert.equal(
    await mistake(server.address),
    `the server at ${server.address} expects TLS: turn TLS on by the option \`tls\` or MUNIMENT_TLS_CA`,
  );
});

test("a server that closes without a byte, as a proxy does whose server is not up yet", async () => {
  let closed = 0;
  const close = (socket: Socket) => {
    closed += 1;
    socket.end();
  };
  await using server = await listening(createSocketServer((socket) => socket.once("data", () => close(socket))));
  assert.equal(
    await lastMistake(server.address),
    `the server at ${server.address} closed the connection without an answer`,
  );
  assert.ok(closed >= 3, `${closed}`); // one of the first attempt, one that asks in TLS, and more
});

test("a deadline that passes in an attempt says why the one before it failed", async () => {
  let first = true;
  const closeFirst = (socket: Socket) => {
    if (first) {
      socket.destroy();
    }
    first = false;
  };
  await using server = await listening(createSocketServer(closeFirst));
  const error = await failed(server.address, 1_000, { ca: OURS.cert });
  assert.equal(error.code, Code.DeadlineExceeded);
  assert.match(error.message, /, after an attempt that failed: UNAVAILABLE: the connection to .* broke: .*TLS/);
});

test("a client with TLS at a port without", async () => {
  await using server = await listening(createServer());
  assert.equal(
    await mistake(server.address, { ca: OURS.cert }),
    `the server at ${server.address} does not speak TLS: connect without the option \`tls\` and MUNIMENT_TLS_CA, ` +
      "which is possible on its own machine, or give the server a certificate",
  );
});

test("a certificate of an authority that is not trusted", async () => {
  await using server = await overTls(HERE);
  for (const tls of [{ ca: OTHERS.cert }, {}]) {
    assert.equal(
      await mistake(server.address, tls),
      `the certificate of ${server.address} is signed by an authority that is not trusted: ` +
        "name its authority by `tls.ca` or MUNIMENT_TLS_CA",
    );
  }
});

test("a certificate for another name", async () => {
  await using server = await overTls(ELSEWHERE);
  assert.equal(
    await mistake(server.address, { ca: OURS.cert }),
    `the certificate of ${server.address} is for other names: connect to one of db.example, 10.0.0.1`,
  );
});

test("a certificate that has expired, which openssl makes none of", () => {
  const refusal = Object.assign(new Error("certificate has expired"), { code: "CERT_HAS_EXPIRED" });
  assert.deepEqual(mistakeIn(refusal, "here:1"), {
    text: "the certificate of here:1 is not accepted: give the server another one (certificate has expired)",
    lasts: true,
  });
});

test("a port where nothing listens", async () => {
  const { address } = await listening(createSocketServer()).then(async (server) => {
    await server[Symbol.asyncDispose]();
    return server;
  });
  for (const place of [address, address.replace("127.0.0.1", "localhost"), "unix:/no/such.sock"]) {
    const expected = `no connection to ${place}: nothing listens there: is the server running, and is this its address?`;
    assert.equal(await lastMistake(place), expected);
  }
});

test("a host that does not exist", async () => {
  assert.equal(
    await lastMistake("muniment.invalid:443", { ca: OURS.cert }),
    "no connection to muniment.invalid:443: its name was not found: check the address",
  );
});

test("an import says so as well", async () => {
  const session = connect({ address: "unix:/no/such.sock", token: "t" });
  const failure = await failureOf(session.passages.importPassages((async function* () {})()));
  assert.match(String(failure), /no connection to unix:.*nothing listens there/);
});
