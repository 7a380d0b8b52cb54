package muniment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.adk.agents.LlmAgent;
import com.google.adk.events.Event;
import com.google.adk.memory.BaseMemoryService;
import com.google.adk.memory.InMemoryMemoryService;
import com.google.adk.models.BaseLlm;
import com.google.adk.models.BaseLlmConnection;
import com.google.adk.models.LlmRequest;
import com.google.adk.models.LlmResponse;
import com.google.adk.runner.Runner;
import com.google.adk.sessions.InMemorySessionService;
import com.google.adk.sessions.Session;
import com.google.adk.tools.LoadMemoryTool;
import com.google.genai.types.Content;
import com.google.genai.types.Part;
import io.reactivex.rxjava3.core.Flowable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.IntStream;
import muniment.v1.Classification;

/**
 * The memory service for Google's ADK, beside ADK's own, on the server that {@code
 * MUNIMENT_ADDRESS} and {@code MUNIMENT_HOST_KEY} name. {@code
 * tests/clients/frameworks/test_java.py} runs it.
 */
final class AdkMemories {
  private static final Classification PUBLIC = Classification.CLASSIFICATION_PUBLIC;
  private static final Classification INTERNAL = Classification.CLASSIFICATION_INTERNAL;
  private static final Classification CONFIDENTIAL = Classification.CLASSIFICATION_CONFIDENTIAL;

  private final HostClient host;
  private final Function<Classification, SessionClient> opened;

  private AdkMemories(HostClient host) {
    this.host = host;
    var agent = host.createAgent(r -> r.setAgentId("adk-" + UUID.randomUUID()));
    var id = agent.getAgent().getAgentId();
    opened = taint -> host.openSession(r -> r.setAgentId(id).setTaint(taint));
  }

  public static void main(String[] arguments) {
    try (var host = HostClient.fromEnvironment()) {
      for (var taint : List.of(PUBLIC, CONFIDENTIAL)) {
        var ours = steps(new MunimentMemoryService(new AdkMemories(host).opened.apply(taint)));
        assertEquals(steps(new InMemoryMemoryService()), ours);
        assertEquals(List.of("Assam at nine.", "She likes Assam."), ours.get(6));
      }
      new AdkMemories(host).aMemoryIsTheEvent();
      new AdkMemories(host).whatWasSaidBesideAMatchIsFoundToo();
      new AdkMemories(host).aCharacterThatCannotBeStoredStopsNothing();
      new AdkMemories(host).theThoughtsOfAModelAreNoSpeech();
      new AdkMemories(host).anEventThatIsTooLongStopsNoOther();
      new AdkMemories(host).noUserIsAnother();
      new AdkMemories(host).atTwoTaints();
      new AdkMemories(host).everyLanguageStoresTheSame();
      new AdkMemories(host).whatAdkForPythonDeletedStaysDeleted();
      new AdkMemories(host).anApplicationHasAnAgentForEachUserAtOneLevel();
      new AdkMemories(host).theMemoriesOfAConversationAreApartByUser();
      new AdkMemories(host).theMemoriesOfAnApplicationAreApartByUser();
      new AdkMemories(host).noModelCanForgeAMemoryOrADeletion(new AdkMemories(host));
      new AdkMemories(host).aRunnerAsks();
    }
    System.out.println("The memory service answers like ADK's own.");
  }

  /** An ADK session of an application {@code tea}, with an event for each text. */
  static Session conversation(String id, String user, String... texts) {
    var events =
        IntStream.range(0, texts.length)
            .mapToObj(
                number ->
                    Event.builder()
                        .id("event " + number)
                        .author("user")
                        .timestamp(1_700_000_000_000L + 1_000 * number)
                        .content(Content.fromParts(Part.fromText(texts[number])))
                        .build())
            .toList();
    return Session.builder(id).appName("tea").userId(user).events(events).build();
  }

  private static List<String> found(
      BaseMemoryService service, String query, String app, String user) {
    return service.searchMemory(app, user, query).blockingGet().memories().stream()
        .map(entry -> entry.content().text())
        .sorted()
        .toList();
  }

  private static void add(BaseMemoryService service, String id, String user, String... texts) {
    service.addSessionToMemory(conversation(id, user, texts)).blockingAwait();
  }

  /**
   * What a service answers. Neighbors in an ADK session, which ours returns too, match themselves
   * or not at all.
   */
  private static List<List<String>> steps(BaseMemoryService service) {
    var answers = new ArrayList<List<String>>();
    answers.add(found(service, "Assam", "tea", "ada"));
    add(service, "one", "ada", "She likes Assam.", "");
    add(service, "two", "ada", "No sugar, ever.");
    answers.add(found(service, "Assam", "tea", "ada"));
    answers.add(found(service, "Assam", "tea", "bob"));
    answers.add(found(service, "Assam", "te", "aada"));
    answers.add(found(service, "coffee", "tea", "ada"));
    answers.add(found(service, " ", "tea", "ada"));
    add(service, "one", "ada", "She likes Assam.", "", "Assam at nine.");
    answers.add(found(service, "Assam", "tea", "ada"));
    answers.add(found(service, "sugar", "tea", "ada"));
    return answers;
  }

  private void aMemoryIsTheEvent() {
    var service = new MunimentMemoryService(opened.apply(PUBLIC));
    add(service, "one", "ada", "She likes Assam.");
    var query = "Assam " + "😀".repeat(2_000);
    var entry = service.searchMemory("tea", "ada", query).blockingGet().memories().get(0);
    assertEquals(
        List.of("user", "user", "2023-11-14T22:13:20Z"),
        List.of(entry.author(), entry.content().role().orElseThrow(), entry.timestamp()));
  }

  private void whatWasSaidBesideAMatchIsFoundToo() {
    var service = new MunimentMemoryService(opened.apply(PUBLIC));
    add(service, "one", "ada", "Which tea?", "Assam.");
    add(service, "two", "ada", "When?", "At nine.");
    assertEquals(List.of("Assam.", "Which tea?"), found(service, "tea", "tea", "ada"));
  }

  private void aCharacterThatCannotBeStoredStopsNothing() {
    var service = new MunimentMemoryService(opened.apply(PUBLIC));
    add(service, "one", "ada", "Assam\0 please", "Assam \ud83d", "Assam at nine.");
    assertEquals(
        List.of("Assam at nine.", "Assam \ufffd", "Assam\ufffd please"),
        found(service, "Assam", "tea", "ada"));
    assertEquals(
        found(service, "nine", "tea", "ada"), found(service, "nine \0\ud83d", "tea", "ada"));
  }

  private void theThoughtsOfAModelAreNoSpeech() {
    var service = new MunimentMemoryService(opened.apply(PUBLIC));
    var thought = Part.builder().text("Assam is too strong for her.").thought(true).build();
    var events = new ArrayList<Event>();
    for (var content :
        List.of(Content.fromParts(thought, Part.fromText("Assam?")), Content.fromParts(thought))) {
      events.add(
          Event.builder().id("event " + events.size()).author("tea").content(content).build());
    }
    service
        .addSessionToMemory(
            Session.builder("one").appName("tea").userId("ada").events(events).build())
        .blockingAwait();
    assertEquals(List.of("Assam?"), found(service, "Assam", "tea", "ada"));
  }

  private void anEventThatIsTooLongStopsNoOther() {
    var service = new MunimentMemoryService(opened.apply(PUBLIC));
    var tooLong = "Assam ".repeat(50_000);
    var error =
        assertThrows(
            IllegalArgumentException.class,
            () -> add(service, "one", "ada", "Assam one", tooLong, "Assam two"));
    assertEquals(
        "Events with more than 256 KiB of text were not stored: 1. All others were",
        error.getMessage());
    assertEquals(List.of("Assam one", "Assam two"), found(service, "Assam", "tea", "ada"));
  }

  private void noUserIsAnother() {
    var service = new MunimentMemoryService(opened.apply(PUBLIC));
    add(service, "one", "ada?", "She likes Assam.");
    assertThrows(IllegalArgumentException.class, () -> found(service, "Assam", "tea", "ada\ud83d"));
    assertThrows(IllegalArgumentException.class, () -> add(service, "one", "ada\ud83d", "No."));
    assertEquals(List.of("She likes Assam."), found(service, "Assam", "tea", "ada?"));
  }

  private void atTwoTaints() {
    var low = new MunimentMemoryService(opened.apply(PUBLIC));
    var high = new MunimentMemoryService(opened.apply(CONFIDENTIAL));
    add(low, "one", "ada", "She likes Assam.");
    add(high, "two", "ada", "Her Assam costs 52,000 a year.");

    assertEquals(List.of("She likes Assam."), found(low, "Assam", "tea", "ada"));
    assertEquals(
        List.of("Her Assam costs 52,000 a year.", "She likes Assam."),
        found(high, "Assam", "tea", "ada"));
  }

  /** Python's {@code test_adk.py} and Go's {@code adk_test.go} have the same names. */
  private void everyLanguageStoresTheSame() {
    var session = opened.apply(PUBLIC);
    add(new MunimentMemoryService(session), "one", "ada", "Tee für Ada");
    var passages = session.listPassages(r -> {}).getPassagesList();
    assertEquals(1, passages.size());
    var passage = passages.get(0);
    assertEquals(
        List.of(
            "muniment:adk:a7466333386f189d1521d8e581abb47c",
            "c294d56f-dc4d-5d98-88f1-f9165894916e",
            "one"),
        List.of(passage.getTags(0), passage.getPassageId(), passage.getThread()));
  }

  /** As its delete_memory does it: the passage is deleted, and a memory records that. */
  private void whatAdkForPythonDeletedStaysDeleted() {
    var session = opened.apply(PUBLIC);
    var service = new MunimentMemoryService(session);
    add(service, "one", "ada", "She likes Assam.");
    var id = session.listPassages(r -> {}).getPassages(0).getPassageId();
    session.deletePassage(r -> r.setPassageId(id));
    session.saveMemory(r -> r.setKey("muniment:adk-deleted/" + id).setContent("deleted"));

    add(service, "one", "ada", "She likes Assam.");
    assertEquals(List.of(), found(service, "Assam", "tea", "ada"));
  }

  private void anApplicationHasAnAgentForEachUserAtOneLevel() {
    var user = UUID.randomUUID().toString();
    var service = new MunimentSharedMemoryService(host, INTERNAL);
    add(service, "one", user, "She likes Assam.");
    add(service, "one", user, "She likes Assam.");
    assertEquals(List.of("She likes Assam."), found(service, "Assam", "tea", user));
    assertEquals(List.of(), found(service, "Assam", "tea", user + "!"));

    var agent = new AdkMemory.Owner("tea", user).agent();
    try (var below = host.openSession(r -> r.setAgentId(agent).setTaint(PUBLIC));
        var above = host.openSession(r -> r.setAgentId(agent).setTaint(CONFIDENTIAL))) {
      assertEquals(0, below.listPassages(r -> {}).getPassagesCount());
      assertEquals(INTERNAL, above.listPassages(r -> {}).getPassages(0).getClassification());
    }
  }

  private void theMemoriesOfAConversationAreApartByUser() {
    var service = new MunimentMemoryService(opened.apply(PUBLIC));
    add(service, "one", "ada", "She likes Assam.");
    add(service, "one", "bob", "He likes Assam.");

    assertEquals(List.of("She likes Assam."), found(service, "Assam", "tea", "ada"));
    assertEquals(List.of("He likes Assam."), found(service, "Assam", "tea", "bob"));
    assertEquals(List.of(), found(service, "Assam", "coffee", "ada"));
  }

  private void theMemoriesOfAnApplicationAreApartByUser() {
    var service = new MunimentSharedMemoryService(host, INTERNAL);
    var users = List.of("ada " + UUID.randomUUID(), "bob " + UUID.randomUUID());
    users.forEach(user -> add(service, "one", user, user + " likes Assam."));

    for (var user : users) {
      assertEquals(List.of(user + " likes Assam."), found(service, "Assam", "tea", user));
      var agent = new AdkMemory.Owner("tea", user).agent();
      try (var session = host.openSession(r -> r.setAgentId(agent).setTaint(INTERNAL))) {
        assertEquals(
            1, session.listPassages(r -> {}).getPassagesCount()); // The agent is the user's.
      }
    }
  }

  /**
   * A model that knows the names of another user can compute the tag and the ids of that user's
   * memories.
   */
  private void noModelCanForgeAMemoryOrADeletion(AdkMemories others) {
    var own = opened.apply(PUBLIC);
    var other = others.opened.apply(PUBLIC);
    var service = new MunimentMemoryService(own);
    var forged = new MunimentMemoryService(other);
    add(service, "one", "ada", "She likes Assam.");
    var stored = own.listPassages(r -> {}).getPassages(0);

    for (var tag : Model.spellings(stored.getTags(0))) {
      Model.call(other, "passage_store", Map.of("content", "No Assam.", "tags", List.of(tag)));
    }
    for (var key : Model.spellings("muniment:adk-deleted/" + stored.getPassageId())) {
      Model.save(other, key, "deleted");
    }
    Model.call(own, "passage_delete", Map.of("passage_id", stored.getPassageId()));

    assertEquals(List.of("She likes Assam."), found(service, "Assam", "tea", "ada"));
    assertEquals(List.of(), found(forged, "Assam", "tea", "ada"));
    add(forged, "one", "ada", "She likes Assam.");
    assertEquals(List.of("She likes Assam."), found(forged, "Assam", "tea", "ada"));
  }

  /** A model that asks its memory, and then says what it was answered. */
  private static final class Scripted extends BaseLlm {
    Scripted() {
      super("scripted");
    }

    @Override
    public Flowable<LlmResponse> generateContent(LlmRequest request, boolean stream) {
      var contents = request.contents();
      var parts = contents.get(contents.size() - 1).parts().orElseThrow();
      var answer =
          parts
              .get(parts.size() - 1)
              .functionResponse()
              .map(response -> Part.fromText(response.response().orElseThrow().toString()))
              .orElseGet(() -> Part.fromFunctionCall("loadMemory", Map.of("query", "tea")));
      var content = Content.builder().role("model").parts(answer).build();
      return Flowable.just(LlmResponse.builder().content(content).build());
    }

    @Override
    public BaseLlmConnection connect(LlmRequest request) {
      throw new UnsupportedOperationException("nothing is streamed");
    }
  }

  private void aRunnerAsks() {
    var service = new MunimentMemoryService(opened.apply(INTERNAL));
    add(service, "one", "ada", "She likes her tea without sugar.");
    var agent =
        LlmAgent.builder().name("butler").model(new Scripted()).tools(new LoadMemoryTool()).build();
    var sessions = new InMemorySessionService();
    var runner =
        Runner.builder()
            .agent(agent)
            .appName("tea")
            .sessionService(sessions)
            .memoryService(service)
            .build();
    var talk = sessions.createSession("tea", "ada").blockingGet();

    var message = Content.fromParts(Part.fromText("How does she like it?"));
    var said = runner.runAsync("ada", talk.id(), message).blockingLast();
    assertEquals(true, said.content().orElseThrow().text().contains("without sugar"));
  }
}
