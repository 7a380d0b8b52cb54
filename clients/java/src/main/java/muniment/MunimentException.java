package muniment;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.BadRequest.FieldViolation;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import com.google.rpc.Status;
import io.grpc.Metadata;
import io.grpc.Status.Code;
import io.grpc.StatusException;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import muniment.v1.BudgetExceeded;
import muniment.v1.Classification;
import muniment.v1.ConversationTainted;
import muniment.v1.ErrorReason;
import muniment.v1.ImportProgress;

/**
 * A call failed.
 *
 * <p>{@link #reason} says why, as the contract's {@link ErrorReason} describes it; several reasons
 * come with a detail that one can act on.
 */
public final class MunimentException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private static final String DOMAIN = "muniment.v1";

  /** The trailer with the id of the call. */
  private static final Metadata.Key<String> REQUEST_ID =
      Metadata.Key.of("request-id", Metadata.ASCII_STRING_MARSHALLER);

  private final Status status;
  private final ErrorInfo info;
  private final String requestId;

  private MunimentException(Status status, ErrorInfo info, String requestId, Throwable cause) {
    super(message(status, info, requestId), cause);
    this.status = status;
    this.info = info;
    this.requestId = requestId;
  }

  /**
   * What a failure of a generated stub stands for.
   *
   * @param failure a {@link StatusRuntimeException} or {@link StatusException}, or caused by one;
   *     anything else is {@code UNKNOWN}
   */
  public static MunimentException of(Throwable failure) {
    Status status = status(failure);
    ErrorInfo info =
        detail(status, ErrorInfo.class)
            .filter(each -> each.getDomain().equals(DOMAIN))
            .orElse(ErrorInfo.getDefaultInstance());
    return new MunimentException(status, info, requestId(failure, info), failure);
  }

  /** The status code. */
  public Code code() {
    return io.grpc.Status.fromCodeValue(status.getCode()).getCode();
  }

  /**
   * Why it failed.
   *
   * <p>{@code ERROR_REASON_UNSPECIFIED} when the answer does not come from Muniment itself; {@code
   * UNRECOGNIZED} when the server is newer than this client: then {@link #reasonName} has it.
   */
  public ErrorReason reason() {
    if (info.getReason().isEmpty()) {
      return ErrorReason.ERROR_REASON_UNSPECIFIED;
    }
    var value = ErrorReason.getDescriptor().findValueByName("ERROR_REASON_" + info.getReason());
    return value == null ? ErrorReason.UNRECOGNIZED : ErrorReason.valueOf(value);
  }

  /**
   * Why it failed, as the server names it: {@code ETAG_STALE}. Empty when the answer does not come
   * from Muniment itself.
   */
  public String reasonName() {
    return info.getReason();
  }

  /** What the server says, for people. It may change. */
  public String description() {
    return status.getMessage();
  }

  /** The fields of the request that break rules of the contract, each with the rule. */
  public List<FieldViolation> violations() {
    return violations(status);
  }

  /** When the server asks to be tried again, never negative. Empty: it does not say. */
  public Optional<Duration> retryAfter() {
    return retryAfter(status);
  }

  /** Of notes over their budget: by how much, and the largest notes, which take the room. */
  public Optional<BudgetExceeded> budgetExceeded() {
    return detail(status, BudgetExceeded.class);
  }

  /** Of a conversation that is tainted higher than a session was to be opened: its taint. */
  public Optional<Classification> taint() {
    return detail(status, ConversationTainted.class).map(ConversationTainted::getTaint);
  }

  /** Of an import that failed: how many passages are stored all the same. */
  public Optional<ImportProgress> importProgress() {
    return detail(status, ImportProgress.class);
  }

  /**
   * Identifies the call in the server's log; after retries, the last attempt. Empty: no server
   * answered.
   */
  public Optional<String> requestId() {
    return Optional.of(requestId).filter(id -> !id.isEmpty());
  }

  /** Of a fault: the request id, as the status itself has it. Empty: the server did not say. */
  public Optional<String> incident() {
    return Optional.ofNullable(info.getMetadataMap().get("incident"));
  }

  /** All details, as they came. */
  public List<Any> details() {
    return status.getDetailsList();
  }

  private static Status status(Throwable failure) {
    try {
      Status rich = StatusProto.fromThrowable(failure);
      if (rich != null) {
        return rich;
      }
    } catch (IllegalArgumentException damaged) {
      // Whatever stands between may have damaged the details: then there are none.
    }
    var plain = io.grpc.Status.fromThrowable(failure);
    String description = Optional.ofNullable(plain.getDescription()).orElse("");
    return Status.newBuilder().setCode(plain.getCode().value()).setMessage(description).build();
  }

  /** The id in the trailer. A server of version 0.1.0 sends none, but faults have an incident. */
  private static String requestId(Throwable failure, ErrorInfo info) {
    return Optional.ofNullable(io.grpc.Status.trailersFromThrowable(failure))
        .map(trailers -> trailers.get(REQUEST_ID))
        .orElse(info.getMetadataOrDefault("incident", ""));
  }

  /** The first detail of one kind. Empty: there is none, or it is damaged. */
  private static <D extends Message> Optional<D> detail(Status status, Class<D> kind) {
    for (Any packed : status.getDetailsList()) {
      if (packed.is(kind)) {
        try {
          return Optional.of(packed.unpack(kind));
        } catch (InvalidProtocolBufferException damaged) {
          return Optional.empty();
        }
      }
    }
    return Optional.empty();
  }

  private static Optional<Duration> retryAfter(Status status) {
    return detail(status, RetryInfo.class)
        .filter(RetryInfo::hasRetryDelay)
        .map(RetryInfo::getRetryDelay)
        .map(delay -> Duration.ofSeconds(delay.getSeconds(), delay.getNanos()))
        .map(delay -> delay.isNegative() ? Duration.ZERO : delay);
  }

  private static List<FieldViolation> violations(Status status) {
    return detail(status, BadRequest.class)
        .map(BadRequest::getFieldViolationsList)
        .orElse(List.of());
  }

  private static String message(Status status, ErrorInfo info, String requestId) {
    String name =
        info.getReason().isEmpty()
            ? io.grpc.Status.fromCodeValue(status.getCode()).getCode().name()
            : info.getReason();
    String facts =
        Stream.of(
                violationsFact(violations(status)),
                detail(status, BudgetExceeded.class).map(MunimentException::budgetFact).orElse(""),
                detail(status, ConversationTainted.class)
                    .map(MunimentException::taintFact)
                    .orElse(""),
                detail(status, ImportProgress.class)
                    .map(MunimentException::progressFact)
                    .orElse(""),
                quotaFact(info.getMetadataOrDefault("quota", "")),
                retryAfter(status).map(MunimentException::retryFact).orElse(""))
            .filter(fact -> !fact.isEmpty())
            .collect(Collectors.joining("; "));
    String request = requestId.isEmpty() ? "" : "request " + requestId;
    return Stream.of(facts, request)
        .filter(text -> !text.isEmpty())
        .map(text -> " (" + text + ")")
        .collect(Collectors.joining("", name + ": " + status.getMessage(), ""));
  }

  private static String violationsFact(List<FieldViolation> violations) {
    return violations.stream()
        .map(each -> each.getField() + ": " + each.getDescription())
        .collect(Collectors.joining("; "));
  }

  private static String budgetFact(BudgetExceeded budget) {
    int limit = budget.getWouldBeChars() - budget.getOverByChars();
    String size = budget.getWouldBeChars() + " of " + limit;
    return "over by " + budget.getOverByChars() + " characters: " + size;
  }

  private static String taintFact(ConversationTainted tainted) {
    return "the taint is " + tainted.getTaint().name().replaceFirst("^CLASSIFICATION_", "");
  }

  private static String progressFact(ImportProgress progress) {
    String stored = progress.getStoredCount() + " passages stored, ";
    return stored + progress.getExistingCount() + " already there";
  }

  private static String quotaFact(String quota) {
    return quota.isEmpty() ? "" : "quota: " + quota;
  }

  private static String retryFact(Duration delay) {
    return "retry after " + seconds(delay) + " s";
  }

  /** As a person writes it: 1, 0.1 or 1.5. */
  private static String seconds(Duration delay) {
    return BigDecimal.valueOf(delay.toMillis(), 3).stripTrailingZeros().toPlainString();
  }
}
