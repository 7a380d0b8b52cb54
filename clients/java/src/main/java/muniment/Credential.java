package muniment;

import io.grpc.Deadline;
import java.util.regex.Pattern;

/** What calls are made with: a host key or a session's token, which may be renewed. */
interface Credential {
  /** Why a call was refused whose credential's time has passed. */
  String EXPIRED = "CREDENTIAL_EXPIRED";

  /** No credential: the server refuses whatever is called. */
  Credential NONE = new Fixed("");

  /** What a call sends. Empty: nothing. */
  String token();

  /** Renews the session before a call, if that is due. */
  default void fresh(Deadline deadline) {}

  /**
   * Whether the token of a call that was refused, and so not executed, is valid again.
   *
   * @throws MunimentException if the session could not be renewed
   */
  default boolean renewed(MunimentException refusal, Deadline deadline) {
    return false;
  }

  /**
   * A credential that stays the same. One that no header can carry is refused without being shown.
   */
  static Credential of(String credential) {
    return new Fixed(checked(credential));
  }

  static String checked(String credential) {
    if (!Fixed.VISIBLE_ASCII.matcher(credential).matches()) {
      throw new IllegalArgumentException(
          "a credential is visible ASCII characters: is there a line end in it?");
    }
    return credential;
  }

  /** No record, which would be printed with it. */
  final class Fixed implements Credential {
    private static final Pattern VISIBLE_ASCII = Pattern.compile("[!-~]+");

    private final String credential;

    private Fixed(String credential) {
      this.credential = credential;
    }

    @Override
    public String token() {
      return credential;
    }
  }
}
