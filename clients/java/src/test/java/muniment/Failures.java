package muniment;

import com.google.protobuf.Any;
import com.google.protobuf.Message;
import com.google.rpc.ErrorInfo;
import com.google.rpc.Status;
import io.grpc.Status.Code;

/** Statuses as the server sends them. */
final class Failures {
  private Failures() {}

  static Status failure(Code code, String reason, Message... details) {
    ErrorInfo info =
        ErrorInfo.newBuilder()
            .setDomain("muniment.v1")
            .setReason(reason)
            .putMetadata("incident", "i-1")
            .build();
    Status.Builder status =
        Status.newBuilder().setCode(code.value()).setMessage("it is so").addDetails(Any.pack(info));
    for (Message detail : details) {
      status.addDetails(Any.pack(detail));
    }
    return status.build();
  }

  static Status unavailable() {
    return failure(Code.UNAVAILABLE, "UNAVAILABLE");
  }
}
