package muniment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.google.adk.memory.BaseMemoryService;
import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.store.memory.chat.ChatMemoryStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import muniment.v1.Classification;
import org.springframework.ai.chat.memory.ChatMemoryRepository;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.UserMessage;

/**
 * Two worlds, seen through each adapter: what a session above does changes nothing below; and a
 * leak is found. It runs on the server that {@code MUNIMENT_ADDRESS} and {@code MUNIMENT_HOST_KEY}
 * name; {@code tests/clients/frameworks/test_java.py} runs it.
 */
final class TwoWorlds {
  private final HostClient host;

  private TwoWorlds(HostClient host) {
    this.host = host;
  }

  public static void main(String[] arguments) {
    try (var host = HostClient.fromEnvironment()) {
      var worlds = new TwoWorlds(host);
      worlds.play(
          ChatMemoryRepository.class, MunimentChatMemoryRepository::new, TwoWorlds::springAi);
      worlds.play(ChatMemoryStore.class, MunimentChatMemoryStore::new, TwoWorlds::langchain4j);
      worlds.play(BaseMemoryService.class, MunimentMemoryService::new, TwoWorlds::adk);
    }
    System.out.println("The two worlds look the same, and each leak was found.");
  }

  /** The calls through an adapter. What they store has the text in it. */
  private interface Calls<T> {
    List<Callable<Object>> of(T adapter, String text);
  }

  private <T> void play(Class<T> type, Function<SessionClient, T> made, Calls<T> calls) {
    var alone = seenBelow(made, calls, false);
    assertEquals(alone, seenBelow(made, calls, true));
    assertNotEquals(alone, seenBelow(leaking(type, made), calls, true));
    assertEquals(alone, seenBelow(leaking(type, made), calls, false));
  }

  /** A broken adapter: all of the process use the one that was made last. */
  private static <T> Function<SessionClient, T> leaking(
      Class<T> type, Function<SessionClient, T> made) {
    var newest = new AtomicReference<T>();
    return session -> {
      newest.set(made.apply(session));
      Class<?>[] interfaces = {type};
      return type.cast(
          Proxy.newProxyInstance(
              type.getClassLoader(),
              interfaces,
              (proxy, method, arguments) -> {
                try {
                  return method.invoke(newest.get(), arguments);
                } catch (InvocationTargetException error) {
                  throw error.getCause();
                }
              }));
    };
  }

  /** What a PUBLIC session sees, while one above makes the same calls in between, or does not. */
  private <T> List<Object> seenBelow(
      Function<SessionClient, T> made, Calls<T> calls, boolean above) {
    var agent = host.createAgent(r -> r.setAgentId("worlds-" + UUID.randomUUID())).getAgent();
    Function<Classification, T> opened =
        taint ->
            made.apply(host.openSession(r -> r.setAgentId(agent.getAgentId()).setTaint(taint)));
    var low = calls.of(opened.apply(Classification.CLASSIFICATION_PUBLIC), "low");
    List<Callable<Object>> high =
        above
            ? calls.of(opened.apply(Classification.CLASSIFICATION_CONFIDENTIAL), "high")
            : List.of();
    var seen = new ArrayList<>();
    for (var number = 0; number < low.size(); number++) {
      if (above) {
        outcome(high.get(number));
      }
      seen.add(outcome(low.get(number)));
    }
    return seen;
  }

  private static Object outcome(Callable<Object> call) {
    try {
      return call.call();
    } catch (MunimentException error) {
      return error.reason();
    } catch (Exception error) {
      return error.toString();
    }
  }

  /** A call without an answer. */
  private static Callable<Object> done(Runnable call) {
    return () -> {
      call.run();
      return "done";
    };
  }

  private static List<Callable<Object>> springAi(ChatMemoryRepository repository, String text) {
    Callable<Object> ids = () -> repository.findConversationIds();
    Callable<Object> read =
        () -> repository.findByConversationId("one").stream().map(Message::getText).toList();
    var save = done(() -> repository.saveAll("one", List.of(new UserMessage(text))));
    var other = done(() -> repository.saveAll(text, List.of(new UserMessage(text))));
    var delete = done(() -> repository.deleteByConversationId("one"));
    return List.of(read, save, read, other, ids, delete, read, delete, save, ids);
  }

  private static List<Callable<Object>> langchain4j(ChatMemoryStore store, String text) {
    List<ChatMessage> messages = List.of(dev.langchain4j.data.message.UserMessage.from(text));
    Callable<Object> read = () -> store.getMessages("one");
    var save = done(() -> store.updateMessages("one", messages));
    var other = done(() -> store.updateMessages(text, messages));
    var delete = done(() -> store.deleteMessages("one"));
    Callable<Object> high = () -> store.getMessages("high");
    return List.of(read, save, read, other, high, delete, read, delete, save);
  }

  private static List<Callable<Object>> adk(BaseMemoryService service, String text) {
    var add = added(service, "one", text);
    var other = added(service, text, text);
    return List.of(
        search(service, "sugar"),
        add,
        search(service, "sugar"),
        other,
        search(service, "Assam"),
        add,
        search(service, "high low sugar"));
  }

  private static Callable<Object> added(BaseMemoryService service, String id, String text) {
    var session = AdkMemories.conversation(id, "ada", "Assam", text + " sugar");
    return done(() -> service.addSessionToMemory(session).blockingAwait());
  }

  private static Callable<Object> search(BaseMemoryService service, String query) {
    return () ->
        service.searchMemory("tea", "ada", query).blockingGet().memories().stream()
            .map(entry -> entry.content().text() + entry.author() + entry.timestamp())
            .toList();
  }
}
