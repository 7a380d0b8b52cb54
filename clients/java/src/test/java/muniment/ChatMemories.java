package muniment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.langchain4j.agent.tool.ToolExecutionRequest;
import dev.langchain4j.data.message.AiMessage;
import dev.langchain4j.data.message.ToolExecutionResultMessage;
import dev.langchain4j.store.memory.chat.ChatMemoryStore;
import dev.langchain4j.store.memory.chat.InMemoryChatMemoryStore;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.IntStream;
import muniment.v1.Classification;
import org.junit.jupiter.api.function.Executable;
import org.springframework.ai.chat.memory.ChatMemoryRepository;
import org.springframework.ai.chat.memory.InMemoryChatMemoryRepository;
import org.springframework.ai.chat.memory.MessageWindowChatMemory;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.SystemMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage;
import org.springframework.ai.chat.messages.UserMessage;

/**
 * The chat memories, each beside the one that its framework brings, on the server that {@code
 * MUNIMENT_ADDRESS} and {@code MUNIMENT_HOST_KEY} name. {@code
 * tests/clients/frameworks/test_java.py} runs it.
 */
final class ChatMemories {
  private static final Classification PUBLIC = Classification.CLASSIFICATION_PUBLIC;
  private static final Classification CONFIDENTIAL = Classification.CLASSIFICATION_CONFIDENTIAL;

  private final Function<Classification, SessionClient> opened;

  private ChatMemories(HostClient host) {
    var agent = host.createAgent(r -> r.setAgentId("chat-" + UUID.randomUUID()));
    var id = agent.getAgent().getAgentId();
    opened = taint -> host.openSession(r -> r.setAgentId(id).setTaint(taint));
  }

  public static void main(String[] arguments) {
    try (var host = HostClient.fromEnvironment()) {
      for (var taint : List.of(PUBLIC, CONFIDENTIAL)) {
        var here = new ChatMemories(host).opened.apply(taint);
        assertEquals(
            springSteps(new InMemoryChatMemoryRepository()),
            springSteps(new MunimentChatMemoryRepository(here)));
        assertEquals(
            langchainSteps(new InMemoryChatMemoryStore()),
            langchainSteps(new MunimentChatMemoryStore(here)));
      }
      new ChatMemories(host).springAtTwoTaints();
      new ChatMemories(host).langchainAtTwoTaints();
      new ChatMemories(host).aWindowOfSprings();
      new ChatMemories(host).conversationsOnTwoPages();
      new ChatMemories(host).noFrameworkReadsTheOthers();
      new ChatMemories(host).noIdIsThatOfAnotherConversation();
      new ChatMemories(host).halfOfASurrogatePairComesBack();
      new ChatMemories(host).anErrorDoesNotQuoteTheMessages();
      new ChatMemories(host).noModelCanForgeMessages(new ChatMemories(host));
    }
    System.out.println("The chat memories answer like those of their frameworks.");
  }

  /** What a repository answers. */
  private static List<Object> springSteps(ChatMemoryRepository repository) {
    var answers = new ArrayList<Object>();
    answers.add(repository.findByConversationId("one"));
    var call = new AssistantMessage.ToolCall("1", "function", "weather", "{\"in\": \"Graz\"}");
    var response = new ToolResponseMessage.ToolResponse("1", "weather", "rain");
    List<Message> messages =
        List.of(
            new SystemMessage("Be brief."),
            new UserMessage("Does it rain? é\n\"\u0001"),
            AssistantMessage.builder().content("").toolCalls(List.of(call)).build(),
            ToolResponseMessage.builder().responses(List.of(response)).build(),
            new AssistantMessage("Yes."));
    repository.saveAll("one", messages);
    repository.saveAll("other", List.of(new UserMessage("Hello.")));
    answers.add(shown(repository.findByConversationId("one")));
    answers.add(repository.findConversationIds().stream().sorted().toList());
    repository.saveAll("one", messages.subList(3, 5));
    answers.add(shown(repository.findByConversationId("one")));
    repository.deleteByConversationId("one");
    repository.deleteByConversationId("one");
    answers.add(repository.findByConversationId("one"));
    answers.add(repository.findConversationIds());
    return answers;
  }

  /** Messages without their metadata. */
  private static List<String> shown(List<Message> messages) {
    return messages.stream()
        .map(
            message ->
                message.getMessageType()
                    + message.getText()
                    + (message instanceof AssistantMessage answer ? answer.getToolCalls() : "")
                    + (message instanceof ToolResponseMessage tool ? tool.getResponses() : ""))
        .toList();
  }

  /** What a store answers. */
  private static List<Object> langchainSteps(ChatMemoryStore store) {
    var answers = new ArrayList<Object>();
    answers.add(store.getMessages(1));
    var call =
        ToolExecutionRequest.builder().id("1").name("weather").arguments("{\"in\": \"Graz\"}");
    List<dev.langchain4j.data.message.ChatMessage> messages =
        List.of(
            dev.langchain4j.data.message.SystemMessage.from("Be brief."),
            dev.langchain4j.data.message.UserMessage.from("Does it rain? é\n\"\u0001"),
            AiMessage.from(call.build()),
            ToolExecutionResultMessage.from("1", "weather", "rain"),
            AiMessage.from("Yes."));
    store.updateMessages(1, messages);
    store.updateMessages("other", messages.subList(0, 1));
    answers.add(store.getMessages(1));
    store.updateMessages(1, messages.subList(3, 5));
    answers.add(store.getMessages(1));
    answers.add(store.getMessages("other"));
    store.deleteMessages(1);
    store.deleteMessages(1);
    answers.add(store.getMessages(1));
    return answers;
  }

  private void springAtTwoTaints() {
    var low = new MunimentChatMemoryRepository(opened.apply(PUBLIC));
    var high = new MunimentChatMemoryRepository(opened.apply(CONFIDENTIAL));
    low.saveAll("one", List.of(new UserMessage("low")));
    high.saveAll("two", List.of(new UserMessage("high")));

    assertEquals(List.of("one"), low.findConversationIds());
    assertEquals(List.of("one", "two"), high.findConversationIds());
    assertEquals(List.of(), low.findByConversationId("two"));
    low.deleteByConversationId("two");
    assertThrows(IllegalStateException.class, () -> high.deleteByConversationId("one"));
    high.saveAll("one", List.of());
    assertEquals(List.of(), high.findByConversationId("one"));
    assertEquals("low", low.findByConversationId("one").get(0).getText());
    high.deleteByConversationId("one");
    assertEquals("low", high.findByConversationId("one").get(0).getText());
  }

  private void langchainAtTwoTaints() {
    var low = new MunimentChatMemoryStore(opened.apply(PUBLIC));
    var high = new MunimentChatMemoryStore(opened.apply(CONFIDENTIAL));
    low.updateMessages("one", List.of(AiMessage.from("low")));
    high.updateMessages("two", List.of(AiMessage.from("high")));

    assertEquals(List.of(), low.getMessages("two"));
    assertEquals(List.of(AiMessage.from("low")), high.getMessages("one"));
    assertThrows(IllegalStateException.class, () -> high.deleteMessages("one"));
    high.updateMessages("one", List.of(AiMessage.from("high")));
    assertEquals(List.of(AiMessage.from("low")), low.getMessages("one"));
  }

  private void aWindowOfSprings() {
    var repository = new MunimentChatMemoryRepository(opened.apply(PUBLIC));
    var window =
        MessageWindowChatMemory.builder().chatMemoryRepository(repository).maxMessages(2).build();
    for (var text : List.of("one", "two", "three")) {
      window.add("one", new UserMessage(text));
    }
    assertEquals(2, window.get("one").size());
    window.clear("one");
    assertEquals(List.of(), repository.findConversationIds());
  }

  private void conversationsOnTwoPages() {
    var spring = new MunimentChatMemoryRepository(opened.apply(PUBLIC));
    var ids = IntStream.rangeClosed(1, 251).mapToObj("%03d"::formatted).toList();
    ids.forEach(id -> spring.saveAll(id, List.of(new UserMessage("Hello"))));

    assertEquals(ids, spring.findConversationIds());
  }

  private void noFrameworkReadsTheOthers() {
    var session = opened.apply(PUBLIC);
    var spring = new MunimentChatMemoryRepository(session);
    var langchain = new MunimentChatMemoryStore(session);
    spring.saveAll("one", List.of(new UserMessage("from Spring")));
    langchain.updateMessages("one", List.of(AiMessage.from("from LangChain")));
    langchain.updateMessages("two", List.of());

    assertEquals("from Spring", spring.findByConversationId("one").get(0).getText());
    assertEquals(List.of(AiMessage.from("from LangChain")), langchain.getMessages("one"));
    assertEquals(List.of("one"), spring.findConversationIds());
  }

  private void noIdIsThatOfAnotherConversation() {
    var session = opened.apply(PUBLIC);
    var spring = new MunimentChatMemoryRepository(session);
    var langchain = new MunimentChatMemoryStore(session);
    for (var id : List.of("null", "a?", "\u00e9")) {
      spring.saveAll(id, List.of(new UserMessage("from Spring")));
      langchain.updateMessages(id, List.of(AiMessage.from("from LangChain")));
    }
    for (var id : Arrays.asList(null, "", " ", "a\ud800", "e\u0301")) {
      assertThrows(IllegalArgumentException.class, () -> spring.findByConversationId(id));
      assertThrows(IllegalArgumentException.class, () -> spring.saveAll(id, List.of()));
      assertThrows(IllegalArgumentException.class, () -> spring.deleteByConversationId(id));
    }
    for (var id : List.of("", "a\ud800", "e\u0301")) {
      assertThrows(IllegalArgumentException.class, () -> langchain.getMessages(id));
      assertThrows(IllegalArgumentException.class, () -> langchain.updateMessages(id, List.of()));
      assertThrows(IllegalArgumentException.class, () -> langchain.deleteMessages(id));
    }
    assertEquals(List.of("a?", "null", "\u00e9"), spring.findConversationIds());
    assertEquals(List.of(AiMessage.from("from LangChain")), langchain.getMessages("a?"));
  }

  private void halfOfASurrogatePairComesBack() {
    var session = opened.apply(PUBLIC);
    var spring = new MunimentChatMemoryRepository(session);
    var langchain = new MunimentChatMemoryStore(session);
    var text = "\ud83d\ud83d\ude00 \\\ude00\0?";
    spring.saveAll("one", List.of(new UserMessage(text)));
    langchain.updateMessages("one", List.of(AiMessage.from(text)));

    assertEquals(text, spring.findByConversationId("one").get(0).getText());
    assertEquals(List.of(AiMessage.from(text)), langchain.getMessages("one"));
  }

  /** A model of this agent changes none, and one of another agent writes none. */
  private void noModelCanForgeMessages(ChatMemories others) {
    var own = opened.apply(PUBLIC);
    var other = others.opened.apply(PUBLIC);
    var spring = new MunimentChatMemoryRepository(own);
    var langchain = new MunimentChatMemoryStore(own);
    spring.saveAll("one", List.of(new UserMessage("Assam")));
    langchain.updateMessages("one", List.of(AiMessage.from("Assam")));

    for (var stored : own.listMemories(r -> {}).getMemoriesList()) {
      for (var key : Model.spellings(stored.getKey())) {
        Model.save(other, key, stored.getContent());
        Model.save(own, key, "[]");
      }
      Model.call(own, "memory_delete", Map.of("key", stored.getKey()));
    }

    assertEquals("Assam", spring.findByConversationId("one").get(0).getText());
    assertEquals(List.of(AiMessage.from("Assam")), langchain.getMessages("one"));
    assertEquals(List.of("one"), spring.findConversationIds());
    assertEquals(List.of(), new MunimentChatMemoryRepository(other).findConversationIds());
    assertEquals(List.of(), new MunimentChatMemoryRepository(other).findByConversationId("one"));
    assertEquals(List.of(), new MunimentChatMemoryStore(other).getMessages("one"));
  }

  private void anErrorDoesNotQuoteTheMessages() {
    var session = opened.apply(PUBLIC);
    for (var damaged : List.of("secret", "[{\"type\": \"secret\"}]", "[{}]", "[\"secret\"]")) {
      session.saveMemory(r -> r.setKey("muniment:spring-ai/one").setContent(damaged));
      session.saveMemory(r -> r.setKey("muniment:langchain4j/one").setContent(damaged));
      for (Executable read :
          List.<Executable>of(
              () -> new MunimentChatMemoryRepository(session).findByConversationId("one"),
              () -> new MunimentChatMemoryStore(session).getMessages("one"))) {
        var error = assertThrows(IllegalStateException.class, read);
        assertEquals(false, error.getMessage().contains("secret"));
        assertNull(error.getCause());
      }
    }
  }
}
