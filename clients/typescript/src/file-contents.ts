// The contents of files: what is stored, and edits.

import { withoutLast } from "./endings.js";
import { FileError } from "./file-errors.js";

const MAX_BYTES = 128 * 1024;
/** How many lines an error lists at most. A model may ask for a text that occurs 100,000 times. */
const MAX_LISTED_LINES = 100;

/** Check what the server would refuse. */
export function requireStorable(path: string, content: string): void {
  const size = Buffer.byteLength(content);
  if (size > MAX_BYTES) {
    const [has, most] = [size.toLocaleString("en"), MAX_BYTES.toLocaleString("en")];
    throw new FileError("InvalidContent", `${path} would have ${has} bytes. A file has at most ${most}: split it.`);
  }
  if (content.includes("\0") || /\p{Surrogate}/u.test(content)) {
    const which = "U+0000, or half of a pair";
    throw new FileError("InvalidContent", `${path} would have a character that cannot be stored: ${which}.`);
  }
}

/** The line in which the only occurrence of a text begins. */
export function onlyLineOf(path: string, content: string, text: string): number {
  const lines: number[] = [];
  let place = text === "" ? -1 : content.indexOf(text);
  for (; place !== -1 && lines.length < MAX_LISTED_LINES; place = content.indexOf(text, place + 1)) {
    lines.push(content.slice(0, place).split("\n").length);
  }
  const [first] = lines;
  if (first === undefined) {
    throw new FileError("NoSuchText", `The text does not occur in ${path}. Nothing was changed.`);
  }
  if (content.split(text).length > 2) {
    const remedy = "give more of its context";
    throw new FileError("AmbiguousText", `The text occurs in ${path} more than once: ${remedy}.`, lines);
  }
  return first;
}

export function withLines(path: string, content: string, line: number, text: string): string {
  const lines = content.split("\n");
  if (lines.at(-1) === "") {
    lines.pop();
  }
  if (!Number.isInteger(line) || line < 0 || line > lines.length) {
    throw new FileError("NoSuchLine", `${path} has ${lines.length} lines. Nothing was inserted.`, [lines.length]);
  }
  lines.splice(line, 0, withoutLast("\n", text));
  const changed = lines.join("\n");
  return changed.endsWith("\n") ? changed : `${changed}\n`;
}
