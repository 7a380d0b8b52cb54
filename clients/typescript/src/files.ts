/**
 * Memories as files: what the adapters for memory tools that work on files are built on.
 *
 * A file is a keyed memory of the session's agent: the file `trips/graz.md` is the memory `muniment:files/trips/graz.md`,
 * with the same content. A directory exists as long as a file is below it. All adapters show the same files, also those
 * of other languages, and other memories are neither seen nor changed: those that a model saved by another tool, and
 * those whose key is not a normalized path, such as `muniment:files/a/../b`.
 *
 * The levels apply as everywhere: files above the session's taint do not exist; a write is made at the taint, and so
 * shadows a lower version; a file that exists only below the taint can be overwritten, but neither deleted nor renamed.
 * Nothing hides a file that the session may read.
 *
 * Every change is made to the version that was read for it, or not at all.
 *
 * `ls`, `glob` and `grep` read all files below a directory, because the server lists memories with their content.
 */

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { MunimentError } from "./errors.js";
import { onlyLineOf, requireStorable, withLines } from "./file-contents.js";
import { FileError, isProblem } from "./file-errors.js";
import { isPath, MAX_KEY_CHARS, matches, normalized, requireName, requireShort } from "./file-paths.js";
import { Classification, type Integrity } from "./gen/muniment/v1/classification_pb.js";
import type { Memory } from "./gen/muniment/v1/memory_pb.js";
import { pages } from "./pages.js";
import { requireSession } from "./require-session.js";
import { RESERVED } from "./reserved.js";
import type { SessionClient } from "./session.js";

export { FileError, type FileProblem, isProblem } from "./file-errors.js";
export { matches, normalized } from "./file-paths.js";

const MAX_PAGE_SIZE = 250;
/** The etag with which a save only creates. */
const ABSENT = "absent";
/** The tag of an empty file. A memory has at least one byte: that of this file is a line break. */
const EMPTY = "empty-file";
const MAX_TAGS = 32;
/** Fields that an impossible path breaks the rules of. */
const PATHS = new Set(["key", "key_prefix", "new_key"]);

/** One version of a file. */
export interface File {
  readonly path: string;
  readonly content: string;
  readonly classification: Classification;
  readonly integrity: Integrity;
  readonly etag: string;
  readonly tags: readonly string[];
  readonly expireTime?: Timestamp | undefined;
}

/** What is written besides the content. */
export interface WriteOptions {
  /** If set, only that version is replaced; otherwise `FileChanged`. */
  readonly etag?: string;
  readonly tags?: readonly string[];
  readonly expireTime?: Timestamp | undefined;
}

/** A file, or a directory with all that is below it. Its size is in bytes of UTF-8. */
export interface Entry {
  readonly path: string;
  readonly isDirectory: boolean;
  readonly size: number;
}

/** One line in which a text occurs, counted from 1. */
export interface Match {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** How files are shown. */
export interface FileViewOptions {
  /** A name without a slash. Views with another root have other files: those under `muniment:files:ROOT/`. */
  readonly root?: string;
  /** What texts of errors show before a path, such as `/memories/`. The default is nothing. */
  readonly shown?: string;
}

/**
 * The files of one session: those of its agent, up to the session's taint.
 *
 * Paths are relative to the root; a slash at the beginning does no harm. Throws {@link FileError}, and
 * `MunimentError`, for example if the session is closed or a quota is exceeded.
 */
export class FileView {
  readonly #session: SessionClient;
  readonly #prefix: string;
  readonly #shown: string;

  constructor(session: SessionClient, { root, shown = "" }: FileViewOptions = {}) {
    requireSession(session);
    this.#session = session;
    if (root === "" || root?.includes("/")) {
      // Its files would be among those of another root.
      throw new TypeError("a root must have a name without a slash; without a root, it has the files of all adapters");
    }
    this.#prefix = root === undefined ? `${RESERVED}files/` : `${RESERVED}files:${root}/`;
    this.#shown = shown;
  }

  /** The file. `NoSuchFile`: none is visible, though there may be a directory. */
  async read(path: string): Promise<File> {
    requireName(path);
    return this.#explained(path, async () => {
      const { memory } = await this.#session.memories.getMemory({ key: this.#key(path) });
      return this.#file(memory as Memory);
    });
  }

  /** All files below a directory, by path. None if there is no such directory. */
  async walk(directory = ""): Promise<File[]> {
    const keyPrefix = normalized(directory) === "" ? this.#prefix : `${this.#key(directory)}/`;
    const request = { keyPrefix, pageSize: MAX_PAGE_SIZE };
    return this.#explained(directory, async () => {
      const all = await pages(this.#session.memories.listMemories, request).all({ restartOnTaintChange: true });
      const files = all.flatMap((page) => page.memories.map((memory) => this.#file(memory)));
      // Calls normalize their path, so with any other path they would reach another memory.
      return files.filter(({ path }) => isPath(path));
    });
  }

  /** What is in a directory, by path, down to a depth. `NoSuchFile`: there is no such directory. */
  async ls(directory = "", depth = 1): Promise<Entry[]> {
    const files = await this.walk(directory);
    const above = normalized(directory);
    if (above !== "" && files.length === 0) {
      throw this.#noSuch(directory);
    }
    return entries(files, above, depth);
  }

  /** Create or replace a file, its tags and its expiry. */
  async write(path: string, content: string, options: WriteOptions = {}): Promise<File> {
    requireName(path);
    requireStorable(this.#named(path), content);
    const { etag = "", tags = [], expireTime } = options;
    if (content === "" && new Set([...tags, EMPTY]).size > MAX_TAGS) {
      throw new FileError(
        "InvalidContent",
        `${this.#named(path)} cannot be empty, because it has ${MAX_TAGS} tags: keep a line break.`,
      );
    }
    const text = content === "" ? { content: "\n", tags: [...tags, EMPTY] } : { content, tags: [...tags] };
    const request = { key: this.#key(path), ...text, etag, ...(expireTime && { expireTime }) };
    return this.#explained(path, async () => {
      const { memory } = await this.#session.memories.saveMemory(request);
      return this.#file(memory as Memory);
    });
  }

  /** Create a file. `FileExists`: a file is visible at the path. */
  async create(path: string, content: string): Promise<File> {
    try {
      return await this.write(path, content, { etag: ABSENT });
    } catch (error) {
      if (isProblem(error, "FileChanged")) {
        throw new FileError("FileExists", `${this.#named(path)} already exists.`);
      }
      throw error;
    }
  }

  /**
   * Replace a text that occurs once. Returns the file, and the line in which the change begins.
   *
   * An edit keeps the tags of the file and its expiry.
   */
  async replace(path: string, old: string, text: string): Promise<{ file: File; line: number }> {
    const before = await this.read(path);
    const line = onlyLineOf(this.#named(path), before.content, old);
    const changed = before.content.replace(old, () => text);
    return { file: await this.write(path, changed, before), line };
  }

  /** Insert lines below a line; 0 is the beginning. Afterwards the file ends with a line break. */
  async insert(path: string, line: number, text: string): Promise<File> {
    const before = await this.read(path);
    return this.write(path, withLines(this.#named(path), before.content, line, text), before);
  }

  /**
   * Delete a file, or all files below a directory. Returns the paths at which a lower version is visible again.
   *
   * `LowerFile`: it is a lower file, or has one below it. Then nothing was deleted.
   */
  async delete(path: string): Promise<string[]> {
    const files = await this.#own(path, "deleted");
    return this.#each(files, "deleted", ({ path: name, etag }) =>
      this.#explained(
        name,
        async () => (await this.#session.memories.deleteMemory({ key: this.#key(name), etag })).revealed,
        "deleted",
      ),
    );
  }

  /**
   * Rename a file, or all files below a directory. Returns the old paths at which a lower version is visible now.
   *
   * `FileExists`: something is at the new path. `LowerFile`: it is a lower file, or has one below it. Then nothing was
   * renamed. Each file is renamed by itself: if another conversation changes one meanwhile, the error says how many were
   * renamed before it, and they stay renamed.
   */
  async rename(path: string, newPath: string): Promise<string[]> {
    const [from, to] = [requireName(path), requireName(newPath)];
    if (from === to || (await this.exists(to))) {
      throw new FileError("FileExists", `${this.#named(to)} already exists.`);
    }
    if (to.startsWith(`${from}/`)) {
      throw new FileError("InvalidPath", `${this.#named(from)} cannot be moved into itself.`);
    }
    const files = await this.#own(from, "renamed");
    const target = (file: File) => to + file.path.slice(from.length);
    const tooLong = files.map(target).find((name) => [...this.#key(name)].length > MAX_KEY_CHARS);
    if (tooLong !== undefined) {
      throw new FileError(
        "InvalidPath",
        `${this.#named(tooLong)} is no possible path: it is too long. Nothing was renamed.`,
      );
    }
    return this.#each(files, "renamed", (file) => {
      const request = { key: this.#key(file.path), newKey: this.#key(target(file)), etag: file.etag };
      return this.#explained(
        file.path,
        async () => (await this.#session.memories.renameMemory(request)).revealed,
        "renamed",
        target(file),
      );
    });
  }

  /** Whether a file or a directory is at the path. */
  async exists(path: string): Promise<boolean> {
    return normalized(path) === "" || (await this.#at(path)).length > 0;
  }

  /**
   * The paths of all files that match, where `*` and `?` stand for anything but a slash, `**` for anything.
   *
   * `InvalidPath`: the pattern has more than 256 characters.
   */
  async glob(pattern: string): Promise<string[]> {
    return (await this.#matching(pattern)).map((file) => file.path);
  }

  /**
   * The lines in which a text occurs, in the files that match a pattern.
   *
   * It is no regular expression, because one that a model writes may take forever. `InvalidPath`: the pattern has more
   * than 256 characters.
   */
  async grep(text: string, pattern = "**"): Promise<Match[]> {
    return (await this.#matching(pattern))
      .flatMap(({ path, content }) =>
        content.split("\n").map((line, number) => ({ path, line: number + 1, text: line })),
      )
      .filter((match) => match.text.includes(text));
  }

  /** The files that match a pattern, of those below the directory that it names before its first wildcard. */
  async #matching(pattern: string): Promise<File[]> {
    requireShort(pattern);
    const fixed = pattern.split(/[*?]/, 1)[0] ?? "";
    const below = await this.walk(fixed.slice(0, Math.max(fixed.lastIndexOf("/"), 0)));
    return below.filter((file) => matches(pattern, file.path));
  }

  /** The file at the path, or all files below it. */
  async #at(path: string): Promise<File[]> {
    try {
      return [await this.read(path)];
    } catch (error) {
      if (isProblem(error, "NoSuchFile")) {
        return this.walk(path);
      }
      throw error;
    }
  }

  /** The same, if none has another label: the server decides, and this finds out before anything is done. */
  async #own(path: string, done: string): Promise<File[]> {
    const files = await this.#at(path);
    if (files.length === 0) {
      throw this.#noSuch(path);
    }
    const { session: own } = await this.#session.sessions.getSession({});
    const lower = files
      .filter((file) => file.classification !== own?.taint || file.integrity !== own.integrity)
      .map((file) => file.path);
    if (lower.length > 0) {
      throw this.#lower(lower, done);
    }
    return files;
  }

  /** Change each file. Returns the paths at which a lower version is visible now. */
  async #each(
    files: readonly File[],
    done: string,
    change: (file: File) => Promise<Classification>,
  ): Promise<string[]> {
    const revealed: string[] = [];
    for (const [number, file] of files.entries()) {
      try {
        if ((await change(file)) !== Classification.UNSPECIFIED) {
          revealed.push(file.path);
        }
      } catch (error) {
        if (!(error instanceof FileError) || number === 0) {
          throw error;
        }
        const before = `${number} of ${files.length} files were ${done} before that, and stay so.`;
        throw new FileError(error.problem, `${error.message} ${before}`, error.lines);
      }
    }
    return revealed;
  }

  #key(path: string): string {
    return `${this.#prefix}${normalized(path)}`;
  }

  #file({ key, content, tags, classification, integrity, etag, expireTime }: Memory): File {
    const isEmpty = content === "\n" && tags.includes(EMPTY);
    const path = key.slice(this.#prefix.length);
    const others = isEmpty ? tags.filter((tag) => tag !== EMPTY) : tags;
    return { path, content: isEmpty ? "" : content, classification, integrity, etag, tags: others, expireTime };
  }

  #named(path: string): string {
    return `${this.#shown}${normalized(path)}`;
  }

  #noSuch(path: string): FileError {
    return new FileError("NoSuchFile", `${this.#named(path)} does not exist.`);
  }

  #lower(paths: readonly string[], done: string): FileError {
    const others = paths.length > 5 ? " and others" : "";
    const named = `${paths
      .slice(0, 5)
      .map((path) => this.#named(path))
      .join(", ")}${others}`;
    return new FileError(
      "LowerFile",
      `${named} cannot be ${done} from this conversation, because it was written at a lower classification. It ` +
        "stays readable. To change what this conversation sees, edit it: conversations at the lower classification " +
        "keep their version.",
    );
  }

  /** Turns the server's refusals into errors that a model understands. */
  async #explained<Result>(
    path: string,
    call: () => Promise<Result>,
    done = "changed",
    newPath = path,
  ): Promise<Result> {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof MunimentError)) {
        throw error;
      }
      throw this.#explanation(path, error, done, newPath);
    }
  }

  #explanation(path: string, error: MunimentError, done: string, newPath: string): Error {
    switch (error.reason) {
      case "MEMORY_NOT_FOUND":
        return this.#noSuch(path);
      case "MEMORY_EXISTS":
        return new FileError("FileExists", `${this.#named(newPath)} already exists.`);
      case "WRITE_LEVEL_MISMATCH":
        return this.#lower([path], done);
      case "ETAG_STALE":
        return new FileError(
          "FileChanged",
          `${this.#named(path)} was changed by somebody else meanwhile: read it again.`,
        );
    }
    if (!error.violations.some((violation) => PATHS.has(violation.field))) {
      return error;
    }
    return new FileError(
      "InvalidPath",
      `${this.#named(newPath)} is no possible path: it is too long, ends in a space, or has a character that is ` +
        "neither a letter, a digit, a sign nor a space.",
    );
  }
}

/** What is in the directory *above*, by path, down to a depth, of which 1 is what is directly in it. */
export function entries(files: readonly File[], above: string, depth: number): Entry[] {
  const found = new Map<string, Entry>();
  const start = above === "" ? 0 : above.length + 1;
  for (const file of files) {
    const names = file.path.slice(start).split("/");
    for (let level = 1; level <= Math.min(names.length, depth); level += 1) {
      const path = file.path.slice(0, start) + names.slice(0, level).join("/");
      const isDirectory = level < names.length;
      const before = found.get(`${path}${isDirectory ? "/" : ""}`)?.size ?? 0;
      const size = before + Buffer.byteLength(file.content);
      found.set(`${path}${isDirectory ? "/" : ""}`, { path, isDirectory, size });
    }
  }
  return [...found.values()].sort((one, other) => compare(one.path.split("/"), other.path.split("/")));
}

function compare(one: readonly string[], other: readonly string[]): number {
  for (const [index, name] of one.entries()) {
    const beside = other[index];
    if (beside === undefined) {
      return 1;
    }
    if (name !== beside) {
      return Buffer.compare(Buffer.from(name), Buffer.from(beside)); // as keys are ordered, not by UTF-16
    }
  }
  return one.length - other.length;
}
