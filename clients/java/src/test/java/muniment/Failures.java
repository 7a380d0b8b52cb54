package muniment;

import com.google.protobuf.Any;
import com.google.protobuf.Message;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import com.google.rpc.Status;
import io.grpc.Status.Code;
import java.time.Duration;

/** Statuses as the server sends them. */
final class Failures {
  private Failures() {}

  static Status failure(Code code, String reason, Message... details) {
    return failure(code, info(reason).build(), details);
  }

  static Status unavailable() {
    return failure(Code.UNAVAILABLE, "UNAVAILABLE");
  }

  static Status overloaded(Duration delay) {
    var proto =
        com.google.protobuf.Duration.newBuilder()
            .setSeconds(delay.toSeconds())
            .setNanos(delay.getNano());
    return failure(
        Code.RESOURCE_EXHAUSTED, "OVERLOADED", RetryInfo.newBuilder().setRetryDelay(proto).build());
  }

  static Status fault(String incident) {
    return failure(Code.INTERNAL, info("INTERNAL").putMetadata("incident", incident).build());
  }

  static Status quotaExceeded(String quota) {
    ErrorInfo info = info("QUOTA_EXCEEDED").putMetadata("quota", quota).build();
    return failure(Code.RESOURCE_EXHAUSTED, info);
  }

  private static ErrorInfo.Builder info(String reason) {
    return ErrorInfo.newBuilder().setDomain("muniment.v1").setReason(reason);
  }

  private static Status failure(Code code, ErrorInfo info, Message... details) {
    Status.Builder status =
        Status.newBuilder().setCode(code.value()).setMessage("it is so").addDetails(Any.pack(info));
    for (Message detail : details) {
      status.addDetails(Any.pack(detail));
    }
    return status.build();
  }
}
