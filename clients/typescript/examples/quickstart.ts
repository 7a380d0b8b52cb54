import { Classification, connectHost } from "muniment";

const host = connectHost();
const { agent } = await host.agents.createAgent({ displayName: "Ada" });
await using session = await host.openSession({ agentId: agent?.agentId ?? "", taint: Classification.PUBLIC });
await session.memories.saveMemory({ key: "tea", content: "Assam, no sugar", tags: ["taste"] });
const { sessionId } = session.info;
await host.sessions.raiseTaint({ sessionId, taint: Classification.CONFIDENTIAL, reason: "read the payroll" });
await session.memories.saveMemory({ key: "salary", content: "52,000 a year" }); // saved at CONFIDENTIAL
const { results } = await session.memories.searchMemories({ query: "how does she like her tea?" });
for (const { memory, snippet } of results) {
  console.log(memory?.key, memory && Classification[memory.classification], snippet);
}
