package muniment;

import static muniment.Failures.failure;
import static muniment.Failures.fault;
import static muniment.Failures.quotaExceeded;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.rpc.BadRequest;
import com.google.rpc.BadRequest.FieldViolation;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import com.google.rpc.Status;
import io.grpc.Metadata;
import io.grpc.Status.Code;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import muniment.v1.BudgetEntry;
import muniment.v1.BudgetExceeded;
import muniment.v1.Classification;
import muniment.v1.ConversationTainted;
import muniment.v1.ErrorReason;
import muniment.v1.ImportProgress;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** From a status to an error. */
class MunimentExceptionTest {
  private static MunimentException error(Status status) {
    return MunimentException.of(StatusProto.toStatusRuntimeException(status));
  }

  @Test
  void anErrorSaysWhatTheServerSays() {
    var error = error(failure(Code.NOT_FOUND, "MEMORY_NOT_FOUND"));

    assertEquals(Code.NOT_FOUND, error.code());
    assertEquals(ErrorReason.ERROR_REASON_MEMORY_NOT_FOUND, error.reason());
    assertEquals("it is so", error.description());
    assertEquals("MEMORY_NOT_FOUND: it is so", error.getMessage());
    assertEquals(Optional.empty(), error.incident());
    assertEquals(Optional.empty(), error.requestId());
    assertEquals(1, error.details().size());
  }

  @Test
  void aFaultOfVersion010HasItsIncidentForARequestId() {
    var error = error(fault("i-1"));

    assertEquals(Optional.of("i-1"), error.incident());
    assertEquals(Optional.of("i-1"), error.requestId());
    assertEquals("INTERNAL: it is so (request i-1)", error.getMessage());
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "UNRECOGNIZED")
  void everyReasonOfTheContractIsKnown(ErrorReason reason) {
    String name = reason.name().substring("ERROR_REASON_".length());

    assertEquals(reason, error(failure(Code.ABORTED, name)).reason());
  }

  @Test
  void aReasonOfANewerServerIsUnrecognizedAndShown() {
    var error = error(failure(Code.ABORTED, "NEWER"));

    assertEquals(ErrorReason.UNRECOGNIZED, error.reason());
    assertEquals("NEWER", error.reasonName());
    assertEquals("NEWER: it is so", error.getMessage());
  }

  @Test
  void aReasonOfAnotherDomainIsNone() {
    var info = ErrorInfo.newBuilder().setDomain("elsewhere").setReason("ETAG_STALE").build();
    var error =
        error(Status.newBuilder().setCode(Code.ABORTED.value()).addDetails(Any.pack(info)).build());

    assertEquals(ErrorReason.ERROR_REASON_UNSPECIFIED, error.reason());
    assertEquals("", error.reasonName());
    assertEquals("ABORTED: ", error.getMessage());
  }

  @Test
  void aBudgetThatRefusesSaysWhatTakesTheRoom() {
    var exceeded =
        BudgetExceeded.newBuilder()
            .setOverByChars(7)
            .setWouldBeChars(2207)
            .addEntries(BudgetEntry.newBuilder().setNoteId("n-1"))
            .build();

    var error = error(failure(Code.FAILED_PRECONDITION, "BUDGET_EXCEEDED", exceeded));

    assertEquals(
        "BUDGET_EXCEEDED: it is so (over by 7 characters: 2207 of 2200)", error.getMessage());
    assertEquals(Optional.of(exceeded), error.budgetExceeded());
    assertEquals(Optional.empty(), error.importProgress());
  }

  @Test
  void aConversationThatIsTaintedHigherSaysHowFar() {
    var taint = Classification.CLASSIFICATION_CONFIDENTIAL;
    var tainted = ConversationTainted.newBuilder().setTaint(taint).build();

    var error = error(failure(Code.FAILED_PRECONDITION, "CONVERSATION_TAINTED", tainted));

    assertEquals("CONVERSATION_TAINTED: it is so (the taint is CONFIDENTIAL)", error.getMessage());
    assertEquals(Optional.of(taint), error.taint());
    assertEquals(Optional.empty(), error.budgetExceeded());
  }

  @Test
  void fieldsThatBreakRulesAreNamed() {
    var violation = FieldViolation.newBuilder().setField("key").setDescription("is empty").build();
    var request = BadRequest.newBuilder().addFieldViolations(violation).build();

    var error = error(failure(Code.INVALID_ARGUMENT, "FIELD_INVALID", request));

    assertEquals(List.of(violation), error.violations());
    assertEquals("FIELD_INVALID: it is so (key: is empty)", error.getMessage());
  }

  @Test
  void theNumbersOfOtherDetailsAreInTheMessage() {
    var progress = ImportProgress.newBuilder().setStoredCount(2).build();
    var cut = error(failure(Code.ABORTED, "TAINT_CHANGED", progress));
    assertEquals("TAINT_CHANGED: it is so (2 passages stored, 0 already there)", cut.getMessage());

    var delay = com.google.protobuf.Duration.newBuilder().setSeconds(1).setNanos(500_000_000);
    var retry = RetryInfo.newBuilder().setRetryDelay(delay).build();
    var overloaded = error(failure(Code.RESOURCE_EXHAUSTED, "OVERLOADED", retry));
    assertEquals("OVERLOADED: it is so (retry after 1.5 s)", overloaded.getMessage());

    var full = error(quotaExceeded("items"));
    assertEquals("QUOTA_EXCEEDED: it is so (quota: items)", full.getMessage());
  }

  @Test
  void aTimeToWaitIsNeverNegative() {
    var past = com.google.protobuf.Duration.newBuilder().setSeconds(-5);
    var retry = RetryInfo.newBuilder().setRetryDelay(past).build();

    var error = error(failure(Code.UNAVAILABLE, "UNAVAILABLE", retry));

    assertEquals(Optional.of(Duration.ZERO), error.retryAfter());
  }

  @Test
  void aDamagedDetailIsNone() {
    var broken =
        Any.pack(BudgetExceeded.getDefaultInstance()).toBuilder()
            .setValue(ByteString.copyFromUtf8("\u0007"))
            .build();
    var status =
        failure(Code.FAILED_PRECONDITION, "BUDGET_EXCEEDED").toBuilder().addDetails(broken);

    assertEquals(Optional.empty(), error(status.build()).budgetExceeded());
  }

  @Test
  void damagedDetailsLeaveCodeAndText() {
    var trailers = new Metadata();
    trailers.put(
        Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER),
        new byte[] {7});

    var error =
        MunimentException.of(
            Code.ABORTED.toStatus().withDescription("it is so").asRuntimeException(trailers));

    assertEquals(Code.ABORTED, error.code());
    assertEquals("it is so", error.description());
    assertEquals(List.of(), error.details());
  }

  @Test
  void whatIsNoStatusIsUnknown() {
    assertEquals(Code.UNKNOWN, MunimentException.of(new IllegalStateException()).code());
  }
}
