import { Classification, type HostClient } from "muniment";

/** Remember a line of a conversation that goes on for weeks, and show the payroll to it. */
export async function talk(host: HostClient, line: string): Promise<string[]> {
  await using conversation = await host.conversation("ada", "chat-42");
  await conversation.memories.saveMemory({ key: "last-line", content: line });
  await conversation.raiseTaint(Classification.CONFIDENTIAL, "read the payroll");
  const { memories } = await conversation.memories.listMemories({});
  return memories.map(({ key, classification }) => `${key} ${Classification[classification]}`);
}
