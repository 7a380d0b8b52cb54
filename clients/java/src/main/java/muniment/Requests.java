package muniment;

import java.util.UUID;
import java.util.function.Consumer;

/** Making requests. */
final class Requests {
  private Requests() {}

  /** The builder, after the caller has filled it in. */
  static <B> B filled(B builder, Consumer<B> request) {
    request.accept(builder);
    return builder;
  }

  /** An id that makes a call safe to repeat. */
  static String newId() {
    return UUID.randomUUID().toString();
  }
}
