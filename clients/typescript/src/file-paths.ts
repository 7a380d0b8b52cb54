// The paths of files, and the patterns that they match.

import { FileError } from "./file-errors.js";

export const MAX_KEY_CHARS = 256;

/**
 * The path from the root in NFC, as keys are stored, without empty names, `.` and `..`. Empty for the root.
 *
 * `InvalidPath`: it leaves the root.
 */
export function normalized(path: string): string {
  if (/\p{Surrogate}/u.test(path)) {
    throw new FileError("InvalidPath", "The path has half of a surrogate pair.");
  }
  const names: string[] = [];
  for (const name of path.split("/")) {
    if (name === "..") {
      if (names.pop() === undefined) {
        throw new FileError("InvalidPath", `${path} leads out of the directory.`);
      }
    } else if (name !== "" && name !== ".") {
      names.push(name);
    }
  }
  return names.join("/").normalize("NFC");
}

/** The path of a file. `InvalidPath`: it is the root. */
export function requireName(path: string): string {
  const name = normalized(path);
  if (name === "") {
    throw new FileError("InvalidPath", `${path || "An empty path"} is not the path of a file.`);
  }
  return name;
}

/** Whether a path is that of a file as {@link normalized} returns it. */
export function isPath(path: string): boolean {
  try {
    return requireName(path) === path;
  } catch {
    return false;
  }
}

/** Check that a pattern is no longer than a key: matching 1,000 files with a very long one would take minutes. */
export function requireShort(pattern: string): void {
  const count = [...pattern].length;
  if (count > MAX_KEY_CHARS) {
    throw new FileError(
      "InvalidPath",
      `The pattern has ${count.toLocaleString("en")} characters. It may have ${MAX_KEY_CHARS}.`,
    );
  }
}

/**
 * Whether a path matches a pattern: see {@link FileView.glob}. A `**` with a slash after it also stands for nothing.
 *
 * It takes time in proportion to the product of their lengths, also if a model chose the pattern to take longer.
 */
export function matches(pattern: string, path: string): boolean {
  const characters = [...path];
  let places = new Set([0]);
  for (const part of pattern.replace(/^\/+/, "").match(/\*\*\/|\*\*|./gsu) ?? []) {
    const after = new Set<number>();
    const first = Math.min(...places);
    for (const place of part.startsWith("**") ? [first] : places) {
      if (part === "*" && after.has(place)) {
        continue; // An earlier place has reached it, and so all that it reaches.
      }
      for (const next of reached(part, characters, place)) {
        after.add(next);
      }
    }
    if (part === "**/") {
      for (const place of places) {
        after.add(place);
      }
    }
    if (after.size === 0) {
      return false;
    }
    places = after;
  }
  return places.has(characters.length);
}

/** The places at which what a part of a pattern stands for may end, if it begins at a place. */
function* reached(part: string, characters: readonly string[], place: number): Generator<number> {
  if (part === "**" || part === "*") {
    yield place;
    for (let end = place; end < characters.length && (part === "**" || characters[end] !== "/"); end += 1) {
      yield end + 1;
    }
  } else if (part === "**/") {
    for (let end = place; end < characters.length; end += 1) {
      if (characters[end] === "/") {
        yield end + 1;
      }
    }
  } else if (
    characters[place] === part ||
    (part === "?" && characters[place] !== undefined && characters[place] !== "/")
  ) {
    yield place + 1;
  }
}
