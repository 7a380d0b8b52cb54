import { pages, type SessionClient } from "muniment";

/** Store the lines of an old conversation, and list everything that is stored. */
export async function archive({ passages }: SessionClient, lines: Iterable<string>): Promise<string[]> {
  async function* requests() {
    for (const content of lines) {
      yield { passage: { content, thread: "old trip" } };
    }
  }
  await passages.importPassages(requests(), { timeoutMs: 60_000 });

  const stored: string[] = [];
  for await (const page of pages(passages.listPassages, { thread: "old trip" })) {
    stored.push(...page.passages.map((passage) => passage.content));
  }
  return stored;
}
