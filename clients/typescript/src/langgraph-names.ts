// The keys and tags of the memories in which `langgraph.ts` stores items.

import { createHash } from "node:crypto";
import { RESERVED } from "./reserved.js";
import { mayStay } from "./unicode.js";

export const TAG = `${RESERVED}langgraph`;
const MAX_TAG_CHARS = 64;
const MAX_KEY_CHARS = 256;
/** With `TAG` itself, that many tags are the most that a memory may have. Deeper namespaces are filtered here. */
const DEEPEST_TAG = 31;

/** The key of the memory for an item: unique for namespace and key, and under a prefix of its own. */
export function keyOf(namespace: readonly string[], key: string): string {
  return `${TAG}/${pathOf(namespace)}/${escaped(key)}`;
}

/** What the keys of all items in a namespace begin with; and some others, such as those of `users2` for `users`. */
export function prefixOf(namespace: readonly string[]): string {
  return [...`${TAG}/${pathOf(namespace)}`].slice(0, MAX_KEY_CHARS).join("");
}

export function pathOf(namespace: readonly string[]): string {
  return namespace.map(escaped).join(".");
}

/** The tags of an item: for its namespace and all parents of that. */
export function tagsOf(namespace: readonly string[]): string[] {
  const depths = Math.min(namespace.length, DEEPEST_TAG) + 1;
  return Array.from({ length: depths }, (_, depth) => tagOf(namespace.slice(0, depth)));
}

/** The tag of all items in a namespace. Two long namespaces may share a tag: callers check the namespace itself. */
export function tagOf(namespace: readonly string[]): string {
  if (namespace.length === 0) {
    return TAG;
  }
  const path = pathOf(namespace.slice(0, DEEPEST_TAG));
  const tag = `${TAG}:${path}`;
  if ([...tag].length <= MAX_TAG_CHARS) {
    return tag;
  }
  return `${TAG}#${createHash("sha256").update(path).digest("hex").slice(0, 32)}`;
}

/**
 * A text with separators and characters that a key must not contain written as `%XX`.
 *
 * Keys are stored in NFC. If that would change the text, all characters outside ASCII are escaped.
 */
function escaped(text: string): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw new Error("a namespace or key must not have half of a surrogate pair");
  }
  const plain = written(text, mayStay);
  return plain === plain.normalize("NFC") ? plain : written(text, (each) => each < "\x80" && mayStay(each));
}

function written(text: string, stays: (character: string) => boolean): string {
  const characters = [...text];
  return characters
    .map((each, place) => {
      const atEnd = place === 0 || place === characters.length - 1; // a key must not begin or end with a space
      return stays(each) && !(atEnd && /\s/u.test(each)) ? each : percent(each);
    })
    .join("");
}

function percent(character: string): string {
  return [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}
