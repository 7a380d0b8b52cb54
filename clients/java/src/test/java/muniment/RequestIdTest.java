package muniment;

import static muniment.Failures.failure;
import static muniment.Failures.fault;
import static muniment.Failures.unavailable;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.rpc.BadRequest;
import com.google.rpc.BadRequest.FieldViolation;
import io.grpc.Status.Code;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import muniment.v1.StorePassageRequest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** An error has the id under which its call is in the server's log. */
class RequestIdTest {
  private FakeServer server;
  private SessionClient session;

  @BeforeEach
  void open() throws IOException {
    server = new FakeServer();
    server.numberAnswers();
    session = SessionClient.connect(server.address(), "mun_s_1_token", Options.DEFAULT);
  }

  @AfterEach
  void close() {
    session.close();
    server.close();
  }

  private MunimentException errorOfARead() {
    return assertThrows(MunimentException.class, () -> session.getMemory(r -> r.setKey("tea")));
  }

  @Test
  void anErrorHasTheIdAndPrintsIt() {
    server.script("GetMemory", failure(Code.NOT_FOUND, "MEMORY_NOT_FOUND"));

    var error = errorOfARead();

    assertEquals(Optional.of("r-1"), error.requestId());
    assertEquals("MEMORY_NOT_FOUND: it is so (request r-1)", error.getMessage());
  }

  @Test
  void itIsPrintedBehindTheRulesThatAreBroken() {
    var violation = FieldViolation.newBuilder().setField("key").setDescription("is empty").build();
    var request = BadRequest.newBuilder().addFieldViolations(violation).build();
    server.script("GetMemory", failure(Code.INVALID_ARGUMENT, "FIELD_INVALID", request));

    assertEquals(
        "FIELD_INVALID: it is so (key: is empty) (request r-1)", errorOfARead().getMessage());
  }

  @Test
  void afterRetriesItIsTheIdOfTheLastAttempt() {
    server.script("GetMemory", unavailable(), failure(Code.NOT_FOUND, "MEMORY_NOT_FOUND"));

    assertEquals(Optional.of("r-2"), errorOfARead().requestId());
  }

  @Test
  void aCallThatTheServerBreaksOffKeepsItsId() {
    server.script("DeleteMemory", failure(Code.CANCELLED, ""));

    var error = assertThrows(MunimentException.class, () -> session.deleteMemory(r -> {}));

    assertEquals(Code.UNAVAILABLE, error.code());
    assertEquals(Optional.of("r-1"), error.requestId());
  }

  @Test
  void anImportThatFailsHasOneToo() {
    server.script("ImportPassages", failure(Code.ABORTED, "TAINT_CHANGED"));
    var passages = List.of(StorePassageRequest.getDefaultInstance());

    var error = assertThrows(MunimentException.class, () -> session.importPassages(passages));

    assertEquals(Optional.of("r-1"), error.requestId());
  }

  @Test
  void withoutAnAnswerThereIsNone() {
    server.close();
    try (var alone =
        SessionClient.connect("127.0.0.1:1", "mun_s_1_token", Options.DEFAULT.withoutRetries())) {
      var error = assertThrows(MunimentException.class, () -> alone.getMemory(r -> {}));

      assertEquals(Optional.empty(), error.requestId());
      assertFalse(error.getMessage().contains("(request"));
    }
  }

  @Test
  void aFaultPrintsOneId() {
    server.script("GetMemory", fault("r-1"));

    assertEquals("INTERNAL: it is so (request r-1)", errorOfARead().getMessage());
  }
}
