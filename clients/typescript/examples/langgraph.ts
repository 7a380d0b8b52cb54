import type { SessionClient } from "muniment";
import { MunimentStore } from "muniment/langgraph";

/** Remember how a user likes it, and find it again. */
export async function remember(session: SessionClient): Promise<string[]> {
  const store = new MunimentStore(session); // for `builder.compile({ store })`
  await store.put(["users", "42"], "theme", { text: "She likes it dark." });
  const found = await store.search(["users"], { query: "does she like it dark?" });
  return found.map((item) => item.key);
}
