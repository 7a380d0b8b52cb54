package muniment;

import com.google.protobuf.Descriptors.FieldDescriptor.JavaType;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.List;

/**
 * Refuses a request with half of a surrogate pair in one of its texts. Protobuf would send a
 * question mark in its place.
 */
final class WholeTexts implements ClientInterceptor {
  @Override
  public <Q, R> ClientCall<Q, R> interceptCall(
      MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
    return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
      @Override
      public void sendMessage(Q request) {
        if (request instanceof Message message && !isWhole(message)) {
          throw Status.INVALID_ARGUMENT
              .withDescription("a text has half of a surrogate pair, which cannot be sent")
              .asRuntimeException();
        }
        super.sendMessage(request);
      }
    };
  }

  private static boolean isWhole(Message message) {
    return message.getAllFields().entrySet().stream()
        .filter(field -> hasTexts(field.getKey().getJavaType()))
        .flatMap(
            field ->
                field.getValue() instanceof List<?> several
                    ? several.stream()
                    : List.of(field.getValue()).stream())
        .allMatch(
            value ->
                value instanceof Message inner
                    ? isWhole(inner)
                    : ((String) value).codePoints().noneMatch(WholeTexts::isHalf));
  }

  private static boolean hasTexts(JavaType type) {
    return type == JavaType.STRING || type == JavaType.MESSAGE;
  }

  private static boolean isHalf(int codePoint) {
    return Character.getType(codePoint) == Character.SURROGATE;
  }
}
