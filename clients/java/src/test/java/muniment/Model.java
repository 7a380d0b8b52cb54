package muniment;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.json.JsonMapper;

/** A model at the tools of MCP, which {@code MUNIMENT_MCP} names. */
final class Model {
  private static final HttpClient HTTP = HttpClient.newHttpClient();
  private static final JsonMapper JSON = new JsonMapper();

  private Model() {}

  /** A name of an adapter: as it is, as the server trims it, and without what is refused. */
  static List<String> spellings(String name) {
    return List.of(name, " " + name, name.replace("muniment:", ""));
  }

  static void save(SessionClient session, String key, String content) {
    call(session, "memory_save", Map.of("key", key, "content", content));
  }

  /** Calls a tool, which may be refused: by the tool, not by the protocol. */
  static void call(SessionClient session, String tool, Map<String, Object> arguments) {
    var params = Map.of("name", tool, "arguments", arguments);
    var body = Map.of("jsonrpc", "2.0", "id", 1, "method", "tools/call", "params", params);
    var request =
        HttpRequest.newBuilder(URI.create(System.getenv("MUNIMENT_MCP")))
            .header("Accept", "application/json, text/event-stream")
            .header("Authorization", "Bearer " + session.token())
            .header("Content-Type", "application/json")
            .header("MCP-Protocol-Version", "2025-06-18")
            .POST(BodyPublishers.ofString(JSON.writeValueAsString(body)))
            .build();
    try {
      var answer = HTTP.send(request, BodyHandlers.ofString()).body();
      assertTrue(JSON.readTree(answer).has("result"), answer);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }
}
