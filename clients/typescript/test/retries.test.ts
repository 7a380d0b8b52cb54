import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import * as contract from "../src/index.js";
import { MemoryService, NoteService, PassageService } from "../src/index.js";
import { mayRepeat } from "../src/retries.js";
import { services } from "./contract.js";

function repeatable<I extends DescMessage>(method: DescMethod & { input: I }, request: MessageInitShape<I>): boolean {
  return mayRepeat(method, create(method.input, request));
}

test("of what changes something, this is repeated as it stands", () => {
  const writes = services(contract)
    .flatMap((service) => service.methods)
    .filter((method) => !/^(Get|List|Search|Render)/.test(method.name));

  const repeated = writes.filter((method) => mayRepeat(method, create(method.input))).map((method) => method.name);

  assert.deepEqual(repeated.sort(), [
    "ApproveRelease",
    "AttachBlock",
    "EditNotes",
    "EraseItems",
    "RaiseTaint",
    "RenewSession",
    "SaveMemories",
    "SaveMemory",
    "UpdateAgent",
    "UpdateBlock",
    "UpdateNote",
  ]);
});

test("every read is repeated", () => {
  const reads = services(contract)
    .flatMap((service) => service.methods)
    .filter((method) => /^(Get|List|Search|Render)/.test(method.name));

  assert.ok(reads.length > 10);
  assert.ok(reads.every((method) => mayRepeat(method, create(method.input))));
});

test("nothing with an etag is repeated", () => {
  assert.ok(!repeatable(MemoryService.method.saveMemory, { etag: "e" }));
  assert.ok(!repeatable(MemoryService.method.saveMemories, { memories: [{}, { etag: "e" }] }));
  assert.ok(!repeatable(NoteService.method.updateNote, { etag: "e" }));
});

test("what is added under an id of the caller's is repeated", () => {
  assert.ok(!repeatable(NoteService.method.addNote, { content: "n" }));
  assert.ok(repeatable(NoteService.method.addNote, { content: "n", noteId: "i" }));
  assert.ok(!repeatable(PassageService.method.storePassage, { content: "p" }));
  assert.ok(repeatable(PassageService.method.storePassage, { content: "p", passageId: "i" }));
});

test("edits are repeated if all of them add under an id, or none is made", () => {
  const { editNotes } = NoteService.method;
  const add = (noteId: string) => ({ edit: { case: "add" as const, value: { content: "n", noteId } } });
  const remove = { edit: { case: "delete" as const, value: { noteId: "i" } } };
  assert.ok(repeatable(editNotes, { edits: [add("i"), add("j")] }));
  assert.ok(!repeatable(editNotes, { edits: [add("i"), add("")] }));
  assert.ok(!repeatable(editNotes, { edits: [add("i"), remove] }));
  assert.ok(repeatable(editNotes, { edits: [remove], validateOnly: true }));
});
