package muniment;

import static muniment.Failures.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Timestamp;
import io.grpc.Status.Code;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import muniment.v1.Agent;
import muniment.v1.BudgetEntry;
import muniment.v1.BudgetExceeded;
import muniment.v1.Classification;
import muniment.v1.CreateAgentResponse;
import muniment.v1.EditNotesRequest;
import muniment.v1.ImportProgress;
import muniment.v1.ListMemoriesResponse;
import muniment.v1.Memory;
import muniment.v1.MemoryResult;
import muniment.v1.OpenSessionResponse;
import muniment.v1.RaiseTaintRequest;
import muniment.v1.SaveMemoryRequest;
import muniment.v1.SearchMemoriesResponse;
import muniment.v1.Session;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The README's code runs. */
class ReadmeTest {
  private static final String CLASSPATH = System.getProperty("java.class.path");
  private static final String IMPORTS =
      """
      import com.google.adk.agents.LlmAgent;
      import com.google.adk.runner.Runner;
      import com.google.adk.tools.LoadMemoryTool;
      import io.grpc.TlsChannelCredentials;
      import java.io.File;
      import java.nio.file.Path;
      import java.time.Duration;
      import java.util.List;
      import java.util.stream.Stream;
      import muniment.*;
      import muniment.v1.*;
      import org.springframework.ai.chat.memory.MessageWindowChatMemory;
      import org.springframework.ai.chat.messages.UserMessage;
      """;

  @TempDir private Path folder;
  private FakeServer server;

  @BeforeEach
  void start() throws IOException {
    server = new FakeServer();
  }

  @AfterEach
  void stop() {
    server.close();
  }

  @Test
  void theTourRunsAndPrintsWhatItSays() throws Exception {
    scriptTour();
    Path source = Files.writeString(folder.resolve("Tea.java"), blocks("java").get(0));

    assertEquals(blocks("text").get(0), output(source));
    assertEquals(2, server.calls("SaveMemory").size());
    assertEquals(1, server.calls("CloseSession").size());
  }

  @Test
  void aConversationIsRaisedAndClosed() throws Exception {
    scriptTour();

    run(1);

    var raised = (RaiseTaintRequest) server.calls("RaiseTaint").get(0).requests().get(0);
    assertEquals("s-1", raised.getSessionId());
    assertEquals(1, server.calls("CloseSession").size());
  }

  @Test
  void pagesAndImportsRun() throws Exception {
    run(2);
    run(3);

    assertEquals(1, server.calls("ListMemories").size());
    assertEquals(2, server.calls("ImportPassages").get(0).requests().size());
  }

  @Test
  void aRaisedTaintHasTheListReadAgain() throws Exception {
    server.script(
        "ListMemories",
        ListMemoriesResponse.newBuilder().setNextPageToken("2").build(),
        failure(Code.ABORTED, "TAINT_CHANGED"));

    run(4);

    assertEquals(1, server.calls("RaiseTaint").size());
    assertEquals(3, server.calls("ListMemories").size());
  }

  @Test
  void anImportGoesOnWhereARaisedTaintCutItOff() throws Exception {
    var progress = ImportProgress.newBuilder().setStoredCount(1).setExistingCount(1).build();
    server.script("ImportPassages", failure(Code.ABORTED, "TAINT_CHANGED", progress));

    run(5);

    assertEquals(3, server.calls("ImportPassages").get(0).requests().size());
    assertEquals(1, server.calls("ImportPassages").get(1).requests().size());
  }

  @Test
  void theErrorsRun() throws Exception {
    server.script("SaveMemory", failure(Code.ABORTED, "ETAG_STALE"));

    run(6);

    assertEquals(1, server.calls("SaveMemory").size());
  }

  @Test
  void aRefusedNoteMakesRoomForItself() throws Exception {
    var exceeded =
        BudgetExceeded.newBuilder()
            .addEntries(BudgetEntry.newBuilder().setNoteId("lower"))
            .addEntries(BudgetEntry.newBuilder().setNoteId("own").setOwnLevel(true));
    server.script(
        "AddNote", failure(Code.FAILED_PRECONDITION, "BUDGET_EXCEEDED", exceeded.build()));

    run(7);

    var request = (EditNotesRequest) server.calls("EditNotes").get(0).requests().get(0);
    assertEquals("own", request.getEdits(0).getDelete().getNoteId());
    assertTrue(request.getEdits(1).hasAdd());
  }

  @Test
  void optionsAndTlsCompile() throws Exception {
    compile(8);
    compile(9);
  }

  @Test
  void chatMemoriesRun() throws Exception {
    var none = failure(Code.NOT_FOUND, "MEMORY_NOT_FOUND");
    server.script("GetMemory", none, none);

    run(10);

    var saved = (SaveMemoryRequest) server.calls("SaveMemory").get(0).requests().get(0);
    assertEquals("muniment:spring-ai/tea", saved.getKey());
    assertTrue(saved.getContent().contains("Assam, no sugar"));
  }

  @Test
  void aMemoryServiceRuns() throws Exception {
    run(11);

    assertEquals(1, server.calls("SearchPassages").size());
    assertEquals(12, blocks("java").size());
  }

  private void scriptTour() {
    var agent = Agent.newBuilder().setAgentId("a-1");
    var hour = Timestamp.newBuilder().setSeconds(3600);
    var session = Session.newBuilder().setSessionId("s-1").setExpireTime(hour);
    var tea = Memory.newBuilder().setClassification(Classification.CLASSIFICATION_PUBLIC);
    var result = MemoryResult.newBuilder().setMemory(tea).setSnippet("Assam, no sugar");
    server.script("CreateAgent", CreateAgentResponse.newBuilder().setAgent(agent).build());
    server.script(
        "OpenSession",
        OpenSessionResponse.newBuilder().setToken("ms_token").setSession(session).build());
    server.script("SearchMemories", SearchMemoriesResponse.newBuilder().addResults(result).build());
  }

  /** What a program prints. Anything on stderr is in it too. */
  private String output(Path source) throws IOException {
    var java = new ProcessBuilder("java", "-cp", CLASSPATH, source.toString());
    java.environment().remove("MUNIMENT_TLS_CA");
    java.environment().put("MUNIMENT_ADDRESS", server.address());
    java.environment().put("MUNIMENT_HOST_KEY", "mk_host");
    return new String(java.redirectErrorStream(true).start().getInputStream().readAllBytes());
  }

  private void run(int block) throws Exception {
    URL[] classes = {compile(block).toUri().toURL()};
    try (var loader = new URLClassLoader(classes);
        var host = HostClient.connect(server.address(), "mk_host")) {
      loader
          .loadClass("Snippet")
          .getDeclaredMethod("run", HostClient.class, SessionClient.class, String.class)
          .invoke(null, host, host.session("ms_session"), "mk_host");
    }
  }

  /** The folder of a class that runs a block. */
  private Path compile(int block) throws IOException {
    String body = blocks("java").get(block);
    String method =
        "public static void run(HostClient host, SessionClient session, String key) throws Exception {"
            + body
            + "}";
    Path source = folder.resolve("Snippet.java");
    Files.writeString(source, IMPORTS + "public class Snippet {" + method + "}");
    int failed =
        ToolProvider.getSystemJavaCompiler()
            .run(null, null, null, "-cp", CLASSPATH, source.toString());
    assertEquals(0, failed);
    return folder;
  }

  private static List<String> blocks(String language) throws IOException {
    return Pattern.compile("(?ms)^```" + language + "\n(.*?)^```")
        .matcher(Files.readString(Path.of("README.md")))
        .results()
        .map(block -> block.group(1))
        .toList();
  }
}
