// What goes wrong with files.

/** What is wrong. */
export type FileProblem =
  /** The path leaves the root, or has a name that a key must not contain. */
  | "InvalidPath"
  /** No file is at the path, and none is below it. */
  | "NoSuchFile"
  /** A file, or a directory, is at the path already. */
  | "FileExists"
  /** Somebody else changed the file meanwhile. */
  | "FileChanged"
  /** Only lower versions are visible, so the file can be neither deleted nor renamed. */
  | "LowerFile"
  /** The text to replace does not occur in the file. */
  | "NoSuchText"
  /** The text to replace occurs more than once: see `lines`, of which 100 are listed at most. */
  | "AmbiguousText"
  /** The file has fewer lines: see `lines` for the last. */
  | "NoSuchLine"
  /** The content is over 128 KiB, or has a character that cannot be stored. */
  | "InvalidContent";

/** What was asked for is not possible. The text is for a model. */
export class FileError extends Error {
  override readonly name = "FileError";

  constructor(
    readonly problem: FileProblem,
    message: string,
    readonly lines: readonly number[] = [],
  ) {
    super(message);
  }
}

/** Whether an error says that a certain thing is wrong. */
export function isProblem(error: unknown, problem: FileProblem): error is FileError {
  return error instanceof FileError && error.problem === problem;
}
