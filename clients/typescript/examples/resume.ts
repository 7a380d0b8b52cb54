import { MunimentError, type SessionClient } from "muniment";

/** Store all lines, the later ones at a higher level if the taint is raised meanwhile. */
export async function store({ passages }: SessionClient, lines: readonly string[]): Promise<void> {
  let done = 0;
  async function* rest() {
    for (const content of lines.slice(done)) {
      yield { passage: { content } };
    }
  }
  for (;;) {
    try {
      await passages.importPassages(rest(), { timeoutMs: 60_000 });
      return;
    } catch (error) {
      const cut = error instanceof MunimentError && error.reason === "TAINT_CHANGED" ? error.progress : undefined;
      if (!cut) {
        throw error;
      }
      done += cut.storedCount + cut.existingCount;
    }
  }
}
