import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { getOption } from "@bufbuild/protobuf";
import * as contract from "../src/index.js";
import { connect, type HostClient, Principal, policy, type SessionClient } from "../src/index.js";
import { services } from "./contract.js";

const GENERATED = new URL("../src/gen/muniment/v1/", import.meta.url);

test("everything that is generated is exported", async () => {
  const files = readdirSync(GENERATED).filter((name) => name.endsWith(".js"));
  assert.ok(files.length > 10);
  for (const file of files) {
    for (const [name, value] of Object.entries(await import(new URL(file, GENERATED).href))) {
      assert.equal((contract as Record<string, unknown>)[name], value, name);
    }
  }
});

test("each kind of caller has a client for every method that is open to it", () => {
  const host = connect({ address: "localhost:1", hostKey: "h" });
  for (const method of services(contract).flatMap((service) => service.methods)) {
    const { principals } = getOption(method, policy);
    assert.ok(offers(host, method.localName) || !principals.includes(Principal.HOST), method.name);
    assert.ok(offers(host.session("t"), method.localName) || !principals.includes(Principal.SESSION), method.name);
  }
});

function offers(client: HostClient | SessionClient, name: string): boolean {
  return name in client || Object.values(client).some((service) => typeof service === "object" && name in service);
}
