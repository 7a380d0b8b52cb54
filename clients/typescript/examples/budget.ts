import { MunimentError, type SessionClient } from "muniment";

/** Add a note, at the cost of the longest one if there is no room. */
export async function addNote({ notes }: SessionClient, content: string): Promise<void> {
  try {
    await notes.addNote({ content });
  } catch (error) {
    const longest = error instanceof MunimentError ? error.budget?.entries.find((entry) => entry.ownLevel) : undefined;
    if (!longest) {
      throw error;
    }
    await notes.editNotes({
      edits: [
        { edit: { case: "delete", value: { noteId: longest.noteId } } },
        { edit: { case: "add", value: { content } } },
      ],
    });
  }
}
