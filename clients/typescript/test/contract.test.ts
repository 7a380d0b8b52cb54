import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { type DescField, getOption } from "@bufbuild/protobuf";
import * as contract from "../src/index.js";
import { connect, type HostClient, Principal, pages, policy, type SessionClient } from "../src/index.js";
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

const CLOSED = () => connect({ address: "localhost:1", hostKey: "h" });

test("each kind of caller has a client for the methods that are open to it, and for no others", () => {
  const host = CLOSED();
  for (const method of services(contract).flatMap((service) => service.methods)) {
    const { principals } = getOption(method, policy);
    assert.equal(offers(host, method.localName), principals.includes(Principal.HOST), method.name);
    assert.equal(offers(host.session("t"), method.localName), principals.includes(Principal.SESSION), method.name);
  }
});

test("every list comes in pages", () => {
  const host = CLOSED();
  const { memories, notes, blocks, passages, versions } = host.session("t");
  const lists = [
    pages(memories.listMemories, {}),
    pages(notes.listNotes, {}),
    pages(blocks.listBlocks, {}),
    pages(passages.listPassages, {}),
    pages(versions.listVersions, {}),
    pages(host.agents.listAgents, {}),
    pages(host.sessions.listSessions, {}),
    pages(host.blocks.listBlockConsumers, {}),
    pages(host.releases.listReleases, {}),
    pages(host.audit.listAuditEvents, {}),
  ];
  const methods = services(contract).flatMap((service) => service.methods);
  assert.equal(lists.length, methods.filter((method) => method.input.fields.some(isPageToken)).length);
});

test("what only a host may call does not compile on a session", () => {
  const session = CLOSED().session("t");
  // @ts-expect-error
  assert.equal(session.sessions.raiseTaint, undefined);
  // @ts-expect-error
  assert.equal(session.sessions.openSession, undefined);
  // @ts-expect-error
  assert.equal(session.blocks.attachBlock, undefined);
  // @ts-expect-error
  assert.equal(session.agents, undefined);
});

function isPageToken(field: DescField): boolean {
  return field.name === "page_token";
}

function offers(client: HostClient | SessionClient, name: string): boolean {
  return name in client || Object.values(client).some((service) => typeof service === "object" && name in service);
}
