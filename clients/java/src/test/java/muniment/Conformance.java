package muniment;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import com.google.protobuf.util.JsonFormat.TypeRegistry;
import com.google.rpc.ErrorDetailsProto;
import com.google.rpc.ErrorInfo;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status.Code;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import muniment.v1.ErrorReason;
import muniment.v1.NoteOuterClass;
import muniment.v1.PassageOuterClass;

/**
 * Plays the scenarios of a file through this client, and prints a line of JSON for each step.
 *
 * <p>The formats of both are described in {@code tests/conformance}. It exits with 2 for a file
 * that is broken, and for a server that is not there.
 */
final class Conformance {
  private static final Pattern VARIABLE = Pattern.compile("\\$\\{(\\w+)}");
  private static final Gson GSON = new GsonBuilder().disableHtmlEscaping().create();
  private static final TypeRegistry DETAILS =
      TypeRegistry.newBuilder()
          .add(ErrorDetailsProto.getDescriptor().getMessageTypes())
          .add(NoteOuterClass.getDescriptor().getMessageTypes())
          .add(PassageOuterClass.getDescriptor().getMessageTypes())
          .build();
  private static final JsonFormat.Printer PRINTER = JsonFormat.printer().usingTypeRegistry(DETAILS);

  /** A variable that no step has saved. */
  private static final class Unresolved extends Exception {
    private static final long serialVersionUID = 1L;
  }

  private final ManagedChannel connection;
  private final Calls host;
  private final Options options;

  private Conformance(ManagedChannel connection, String hostKey, Options options) {
    this.connection = connection;
    this.host = new Calls(connection, new Metadata(), options).as(hostKey);
    this.options = options;
  }

  public static void main(String[] arguments) throws IOException {
    String ca = System.getenv("MUNIMENT_CA_FILE");
    Options options = ca == null ? Options.DEFAULT : Options.DEFAULT.withTls(Path.of(ca));
    Settings settings = Settings.find(System.getenv(), Settings.HOST_KEY);
    ManagedChannel connection = Connection.open(settings.address(), options);
    try {
      JsonObject file =
          JsonParser.parseString(Files.readString(Path.of(arguments[0]))).getAsJsonObject();
      new Conformance(connection, settings.credential(), options).play(file);
    } catch (IOException | JsonParseException | IllegalStateException broken) {
      System.err.println(broken);
      System.exit(2);
    } finally {
      connection.shutdownNow();
    }
  }

  private void play(JsonObject file) throws IOException {
    for (JsonElement scenario : file.getAsJsonArray("scenarios")) {
      Map<String, String> variables = new HashMap<>();
      JsonArray steps = scenario.getAsJsonObject().getAsJsonArray("steps");
      for (int index = 0; index < steps.size(); index++) {
        JsonObject line = line(steps.get(index), variables);
        line.add("scenario", scenario.getAsJsonObject().get("name"));
        line.addProperty("step", index);
        System.out.println(GSON.toJson(line));
      }
    }
  }

  /** What a step comes to. Saves what it is to save. */
  private JsonObject line(JsonElement template, Map<String, String> variables) throws IOException {
    JsonObject line = new JsonObject();
    try {
      JsonObject step = resolved(template, variables).getAsJsonObject();
      JsonObject response = json(response(step));
      save(step, response, variables);
      line.addProperty("status", Code.OK.name());
      line.add("response", response);
    } catch (Unresolved unresolved) {
      line.addProperty("status", "UNRESOLVED");
    } catch (MunimentException error) {
      if (error.code() == Code.UNAVAILABLE && error.details().isEmpty()) {
        throw new IOException("no connection", error);
      }
      line.addProperty("status", error.code().name());
      line.addProperty("reason", reason(error));
      line.addProperty("message", error.description());
      line.add("details", details(error));
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
          case "none" -> new Calls(connection, new Metadata(), options);
          default -> host.as(as);
        };
    return step.has("deadline_ms")
        ? calls.within(Duration.ofMillis(step.get("deadline_ms").getAsLong()))
        : calls;
  }

  private static Message request(MethodDescriptor<Message, Message> method, JsonElement json)
      throws InvalidProtocolBufferException {
    Message.Builder builder = Contract.request(method).newBuilderForType();
    JsonFormat.parser().merge(GSON.toJson(json), builder);
    return builder.build();
  }

  private static void save(JsonObject step, JsonObject response, Map<String, String> variables)
      throws IOException {
    if (step.has("save")) {
      for (var each : step.getAsJsonObject("save").entrySet()) {
        variables.put(each.getKey(), at(response, each.getValue().getAsString()));
      }
    }
  }

  /** The value at a dotted path: a string as it is, another scalar as JSON. */
  private static String at(JsonElement value, String path) throws IOException {
    JsonElement found = value;
    for (String name : path.split("\\.")) {
      if (found instanceof JsonArray list && Integer.parseInt(name) < list.size()) {
        found = list.get(Integer.parseInt(name));
      } else if (found instanceof JsonObject object && object.has(name)) {
        found = object.get(name);
      } else {
        throw new IOException("the response has no " + path);
      }
    }
    return found.getAsString();
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

  private static String reason(MunimentException error) {
    return error.reason() == ErrorReason.ERROR_REASON_UNSPECIFIED
        ? ""
        : error.reason().name().replaceFirst("^ERROR_REASON_", "");
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
