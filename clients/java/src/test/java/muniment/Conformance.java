package muniment;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import com.google.protobuf.util.JsonFormat.TypeRegistry;
import com.google.rpc.ErrorDetailsProto;
import com.google.rpc.ErrorInfo;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status.Code;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import muniment.v1.NoteOuterClass;
import muniment.v1.OpenSessionRequest;
import muniment.v1.PassageOuterClass;
import muniment.v1.SessionOuterClass;
import muniment.v1.SessionServiceGrpc;

/**
 * Plays the scenarios of a file through this client, and prints a line of JSON for each step.
 *
 * <p>The formats of both are described in {@code tests/clients/conformance}. It exits with 2 for a
 * file that is broken, and for a server that is not there.
 */
final class Conformance {
  private static final Pattern VARIABLE = Pattern.compile("\\$\\{(\\w+)}");
  private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().create();
  private static final TypeRegistry DETAILS =
      TypeRegistry.newBuilder()
          .add(ErrorDetailsProto.getDescriptor().getMessageTypes())
          .add(NoteOuterClass.getDescriptor().getMessageTypes())
          .add(PassageOuterClass.getDescriptor().getMessageTypes())
          .add(SessionOuterClass.getDescriptor().getMessageTypes())
          .build();
  private static final JsonFormat.Printer PRINTER = JsonFormat.printer().usingTypeRegistry(DETAILS);

  /** A variable that no step has saved. */
  private static final class Unresolved extends Exception {
    private static final long serialVersionUID = 1L;
  }

  private final Pool connection;
  private final Calls host;
  private final Options options;

  /** The conversations that a scenario has opened, by the caller that its steps name. */
  private final Map<String, Calls> conversations = new HashMap<>();

  private Conformance(Pool connection, String hostKey, Options options) {
    this.connection = connection;
    this.host = new Calls(connection, Credential.NONE, options).as(hostKey);
    this.options = options;
  }

  public static void main(String[] arguments) {
    try {
      play(Path.of(arguments[0]));
    } catch (IOException | RuntimeException broken) {
      System.err.println(broken);
      System.exit(2);
    }
  }

  private static void play(Path file) throws IOException {
    Settings settings = Settings.find(System.getenv(), Settings.HOST_KEY);
    Options options = settings.over(Options.DEFAULT);
    JsonObject scenarios = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    Pool connection = Connection.open(settings.address(), options);
    try {
      new Conformance(connection, settings.credential(), options).play(scenarios);
    } finally {
      connection.shutdownNow();
    }
  }

  private void play(JsonObject file) throws IOException {
    // JSON is UTF-8, whatever the locale says.
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, UTF_8);
    for (JsonElement scenario : file.getAsJsonArray("scenarios")) {
      Map<String, String> variables = new HashMap<>();
      conversations.clear();
      JsonArray steps = scenario.getAsJsonObject().getAsJsonArray("steps");
      for (int index = 0; index < steps.size(); index++) {
        if (steps.get(index).getAsJsonObject().has("wait")) {
          System.in.read();
        }
        Map<String, JsonElement> line = line(steps.get(index), variables);
        line.put("scenario", scenario.getAsJsonObject().get("name"));
        line.put("step", new JsonPrimitive(index));
        out.println(GSON.toJson(line));
      }
    }
  }

  /** What a step comes to. Saves what it is to save. */
  private Map<String, JsonElement> line(JsonElement template, Map<String, String> variables)
      throws IOException {
    Map<String, JsonElement> line = new TreeMap<>();
    try {
      JsonObject step = resolved(template, variables).getAsJsonObject();
      JsonObject response = json(response(step));
      save(step, response, variables);
      line.put("status", new JsonPrimitive(Code.OK.name()));
      line.put("response", response);
    } catch (Unresolved unresolved) {
      line.put("status", new JsonPrimitive("UNRESOLVED"));
    } catch (MunimentException error) {
      boolean lost = error.code() == Code.UNAVAILABLE && error.details().isEmpty();
      if (lost && !template.getAsJsonObject().has("may_be_lost")) {
        throw new IOException(error.getMessage(), error);
      }
      line.put("status", new JsonPrimitive(error.code().name()));
      line.put("reason", new JsonPrimitive(error.reasonName()));
      line.put("message", new JsonPrimitive(error.description()));
      line.put("details", details(error));
      line.put("request_id", new JsonPrimitive(error.requestId().orElse("")));
    }
    return line;
  }

  private Message response(JsonObject step) throws IOException {
    MethodDescriptor<Message, Message> method =
        Contract.METHODS.get(step.get("call").getAsString());
    if (method == null) {
      throw new IOException("the contract has no " + step.get("call"));
    }
    Calls calls = calls(step);
    if (method.getType() == MethodType.UNARY) {
      return calls.call(method, request(method, step.get("request")));
    }
    List<Message> requests = new ArrayList<>();
    for (JsonElement each : step.getAsJsonArray("requests")) {
      requests.add(request(method, each));
    }
    return calls.stream(method, requests.iterator());
  }

  private Calls calls(JsonObject step) {
    String as = step.get("as").getAsString();
    Calls calls =
        switch (as) {
          case "host" -> host;
          case "none" -> new Calls(connection, Credential.NONE, options);
          default -> as.startsWith("conversation ") ? conversation(as) : host.as(as);
        };
    return step.has("deadline_ms")
        ? calls.within(Duration.ofMillis(step.get("deadline_ms").getAsLong()))
        : calls;
  }

  /** Opened by the first step that names it. */
  private Calls conversation(String as) {
    String[] names = as.split(" ");
    return conversations.computeIfAbsent(
        as,
        opened -> {
          long begun = System.nanoTime();
          var request =
              OpenSessionRequest.newBuilder().setAgentId(names[1]).setConversationId(names[2]);
          var came = host.call(SessionServiceGrpc.getOpenSessionMethod(), request.build());
          return host.as(new Renewals(host, came.getToken(), came.getSession(), begun));
        });
  }

  private static Message request(MethodDescriptor<Message, Message> method, JsonElement json)
      throws InvalidProtocolBufferException {
    Message.Builder builder = Contract.request(method).newBuilderForType();
    JsonFormat.parser().merge(GSON.toJson(json), builder);
    return builder.build();
  }

  private static void save(JsonObject step, JsonObject response, Map<String, String> variables) {
    if (step.has("save")) {
      for (var each : step.getAsJsonObject("save").entrySet()) {
        JsonElement value = at(response, each.getValue().getAsString());
        if (value != null) {
          variables.put(each.getKey(), value.getAsString());
        }
      }
    }
  }

  /** The value at a dotted path. Null: there is none, as where it is the default. */
  private static JsonElement at(JsonElement response, String path) {
    JsonElement found = response;
    for (String name : path.split("\\.")) {
      if (found instanceof JsonArray list) {
        int index = Integer.parseInt(name);
        found = index < list.size() ? list.get(index) : null;
      } else if (found instanceof JsonObject object) {
        found = object.get(name);
      } else {
        return null;
      }
    }
    return found;
  }

  private static JsonElement resolved(JsonElement value, Map<String, String> variables)
      throws Unresolved {
    if (value instanceof JsonPrimitive scalar && scalar.isString()) {
      return new JsonPrimitive(resolved(scalar.getAsString(), variables));
    }
    if (value instanceof JsonArray list) {
      JsonArray copy = new JsonArray();
      for (JsonElement each : list) {
        copy.add(resolved(each, variables));
      }
      return copy;
    }
    if (value instanceof JsonObject object) {
      JsonObject copy = new JsonObject();
      for (var each : object.entrySet()) {
        copy.add(each.getKey(), resolved(each.getValue(), variables));
      }
      return copy;
    }
    return value;
  }

  private static String resolved(String text, Map<String, String> variables) throws Unresolved {
    Matcher matcher = VARIABLE.matcher(text);
    StringBuilder result = new StringBuilder();
    while (matcher.find()) {
      String value = variables.get(matcher.group(1));
      if (value == null) {
        throw new Unresolved();
      }
      matcher.appendReplacement(result, Matcher.quoteReplacement(value));
    }
    return matcher.appendTail(result).toString();
  }

  private static JsonArray details(MunimentException error) throws IOException {
    JsonArray details = new JsonArray();
    for (Any detail : error.details()) {
      if (!detail.is(ErrorInfo.class)) {
        details.add(json(detail));
      }
    }
    return details;
  }

  private static JsonObject json(Message message) throws IOException {
    return JsonParser.parseString(PRINTER.print(message)).getAsJsonObject();
  }
}
