/**
 * Anthropic's memory tool (`memory_20250818`), for `betaMemoryTool` of `@anthropic-ai/sdk`, and for whatever takes its
 * commands, such as the `execute` of the Vercel AI SDK and of LangChain.js.
 *
 * The model's file `/memories/trips/graz.md` is the memory `muniment:files/trips/graz.md`: see `muniment/files`. What
 * the model reads is worded as Anthropic documents it, because models are trained on these texts, with these additions:
 *
 * - A file that was written below the taint can be edited, but neither deleted nor renamed: the model learns why.
 * - If a deletion or a rename uncovers a lower version, the answer says so.
 * - If somebody else changes a file while it is edited, nothing is changed, and the model is asked to read it again.
 * - A file has at most 128 KiB. The size of a directory is that of the files in it.
 */

import type { MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import { withoutLast } from "./endings.js";
import { entries, type File, FileError, FileView, type FileViewOptions, isProblem, normalized } from "./files.js";
import type { SessionClient } from "./session.js";

const MEMORIES = "/memories";
/** How deep a directory is shown. */
const DEPTH = 2;
/** How many lines around an edit are shown. */
const AROUND = 2;

type Handler = keyof MemoryToolHandlers;
/** One command of the model, as the tool gives it. */
export type MemoryCommand = { [H in Handler]: Parameters<MemoryToolHandlers[H]>[0] }[Handler];
type Command<H extends Handler> = Extract<MemoryCommand, { command: H }>;

/** The memory tool of one session: the files of its agent, up to the session's taint. It does not close the session. */
export class MunimentMemoryTool implements MemoryToolHandlers {
  readonly #files: FileView;

  constructor(session: SessionClient, options: Pick<FileViewOptions, "root"> = {}) {
    this.#files = new FileView(session, { ...options, shown: `${MEMORIES}/` });
  }

  /** Execute any command, for tools that hand over the whole of it. */
  async execute(command: MemoryCommand): Promise<string> {
    switch (command.command) {
      case "view":
        return this.view(command);
      case "create":
        return this.create(command);
      case "str_replace":
        return this.str_replace(command);
      case "insert":
        return this.insert(command);
      case "delete":
        return this.delete(command);
      case "rename":
        return this.rename(command);
      default:
        throw new Error(`Unknown command: ${(command as { command: string }).command}`);
    }
  }

  /** A file with line numbers, or what is in a directory. */
  async view({ path: given, view_range: range }: Command<"view">): Promise<string> {
    return worded(given, async () => {
      const path = below(given);
      try {
        if (path !== "") {
          return numbered(given, await this.#files.read(path), range ?? undefined);
        }
      } catch (error) {
        if (!isProblem(error, "NoSuchFile")) {
          throw error;
        }
      }
      return this.#listing(given, path);
    });
  }

  /** Create a file. */
  async create({ path: given, file_text: text }: Command<"create">): Promise<string> {
    requireTexts({ file_text: text });
    return worded(given, async () => {
      const path = below(given);
      if (await this.#files.exists(path)) {
        throw new Error(`File ${given} already exists`);
      }
      await this.#files.create(path, text);
      return `File created successfully at: ${given}`;
    });
  }

  /** Replace a text that occurs once. */
  async str_replace({ path, old_str: old, new_str: text }: Command<"str_replace">): Promise<string> {
    requireTexts({ old_str: old, new_str: text ?? "" });
    return this.#wordedEdit(path, async () => {
      try {
        const { file, line } = await this.#files.replace(below(path), old, text ?? "");
        const first = Math.max(line - AROUND, 1);
        const snippet = withNumbers(file.content.split("\n").slice(first - 1, line + AROUND), first);
        return `The memory file has been edited. Here is the snippet showing the change (with line numbers):\n${snippet}`;
      } catch (error) {
        if (isProblem(error, "NoSuchText")) {
          throw new Error(`No replacement was performed, old_str \`${old}\` did not appear verbatim in ${path}.`);
        }
        if (isProblem(error, "AmbiguousText")) {
          throw new Error(
            `No replacement was performed. Multiple occurrences of old_str \`${old}\` in lines: ` +
              `${error.lines.join(", ")}. Please ensure it is unique`,
          );
        }
        throw error;
      }
    });
  }

  /** Insert lines below a line. */
  async insert({ path, insert_line: line, insert_text: text }: Command<"insert">): Promise<string> {
    requireTexts({ insert_text: text });
    return this.#wordedEdit(path, async () => {
      try {
        await this.#files.insert(below(path), line, text);
      } catch (error) {
        if (isProblem(error, "NoSuchLine")) {
          throw new Error(
            `Invalid \`insert_line\` parameter: ${line}. It should be within the range of lines of the file: ` +
              `[0, ${error.lines[0]}]`,
          );
        }
        throw error;
      }
      return `The file ${path} has been edited.`;
    });
  }

  /** Delete a file, or a directory with all that is in it. */
  async delete({ path: given }: Command<"delete">): Promise<string> {
    return worded(
      given,
      async () => {
        const path = below(given);
        if (path === "") {
          throw new Error(`Cannot delete the ${MEMORIES} directory itself`);
        }
        return `Successfully deleted ${given}${uncovered(await this.#files.delete(path))}`;
      },
      `The path ${given} does not exist`,
    );
  }

  /** Rename or move a file or a directory. */
  async rename({ old_path: given, new_path: to }: Command<"rename">): Promise<string> {
    return worded(
      given,
      async () => {
        const [from, path] = [below(given), below(to)];
        if (from === "") {
          throw new Error(`Cannot rename the ${MEMORIES} directory itself`);
        }
        try {
          if (path !== "") {
            return `Successfully renamed ${given} to ${to}${uncovered(await this.#files.rename(from, path))}`;
          }
        } catch (error) {
          if (!isProblem(error, "FileExists")) {
            throw error;
          }
        }
        throw new Error(`The destination ${to} already exists`);
      },
      `The path ${given} does not exist`,
    );
  }

  async #listing(shown: string, path: string): Promise<string> {
    const files = await this.#files.walk(path);
    if (path !== "" && files.length === 0) {
      throw new FileError("NoSuchFile", "");
    }
    return listed(
      shown,
      path,
      files.filter((file) => !isHidden(file.path.slice(path.length))),
    );
  }

  #wordedEdit(path: string, edit: () => Promise<string>): Promise<string> {
    return worded(path, async () => {
      try {
        return await edit();
      } catch (error) {
        if (isProblem(error, "NoSuchFile") && (await this.#files.exists(below(path)))) {
          throw new Error(`The path ${path} is not a file.`);
        }
        throw error;
      }
    });
  }
}

/** Check what a model left out, or gave as something else. JavaScript would look for the text `undefined`. */
function requireTexts(parameters: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(parameters)) {
    if (typeof value !== "string") {
      throw new Error(`Invalid \`${name}\` parameter: it must be a string`);
    }
  }
}

/** Words errors of files as the tool does. */
async function worded(
  path: string,
  act: () => Promise<string>,
  missing = `The path ${path} does not exist. Please provide a valid path.`,
): Promise<string> {
  try {
    return await act();
  } catch (error) {
    if (isProblem(error, "NoSuchFile")) {
      throw new Error(missing);
    }
    if (isProblem(error, "FileExists")) {
      throw new Error(`File ${path} already exists`);
    }
    throw error;
  }
}

/** The path below the root. Empty for `/memories` itself. */
function below(given: string): string {
  requireTexts({ path: given });
  if (given !== MEMORIES && !given.startsWith(`${MEMORIES}/`)) {
    throw new Error(`Path must start with ${MEMORIES}, got: ${given}`);
  }
  try {
    return normalized(given.slice(MEMORIES.length));
  } catch {
    throw new Error(`Path ${given} would escape ${MEMORIES} directory`);
  }
}

function numbered(path: string, file: File, range: readonly number[] | undefined): string {
  const lines = file.content.split("\n");
  const [from = 1, to = -1] = range?.length === 2 ? range : [];
  if (!(Number.isInteger(from) && Number.isInteger(to))) {
    throw new Error("Invalid `view_range` parameter: it must be two integers");
  }
  const first = Math.max(from, 1);
  const shown = lines.slice(first - 1, to === -1 ? undefined : Math.max(to, 0));
  return `Here's the content of ${path} with line numbers:\n${withNumbers(shown, first)}`;
}

function withNumbers(lines: readonly string[], first: number): string {
  return lines.map((line, index) => `${String(first + index).padStart(6)}\t${line}`).join("\n");
}

function isHidden(path: string): boolean {
  return path.split("/").some((name) => name.startsWith(".") || name === "node_modules");
}

function listed(shown: string, path: string, files: readonly File[]): string {
  const whole = files.reduce((sum, file) => sum + Buffer.byteLength(file.content), 0);
  const lines = entries(files, path, DEPTH).map((entry) => {
    const name = entry.path.slice(path.length).replace(/^\//, "");
    return `${size(entry.size)}\t${withoutLast("/", shown)}/${name}${entry.isDirectory ? "/" : ""}`;
  });
  const header = `Here're the files and directories up to 2 levels deep in ${shown}, excluding hidden items and node_modules:`;
  return [header, `${size(whole)}\t${shown}`, ...lines].join("\n");
}

/** A number of bytes as `ls -h` writes it, such as 1.5K. */
function size(bytes: number): string {
  const unit = bytes === 0 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), 3);
  const count = bytes / 1024 ** unit;
  return `${Number.isInteger(count) ? count : count.toFixed(1)}${"BKMG"[unit]}`;
}

function uncovered(revealed: readonly string[]): string {
  if (revealed.length === 0) {
    return "";
  }
  const named = revealed.slice(0, 5).map((path) => `${MEMORIES}/${path}`);
  const others = revealed.length > 5 ? " and others" : "";
  return (
    `. An earlier version of ${named.join(", ")}${others}, which was written at a lower classification, is visible ` +
    "again."
  );
}
