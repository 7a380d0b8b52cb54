package muniment;

import io.grpc.Status;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.nio.channels.ClosedChannelException;
import java.security.cert.CertPathBuilderException;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateException;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateNotYetValidException;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.net.ssl.SSLException;

/** Explains failures of a connection, and what to do. gRPC calls most of them "io exception". */
final class Mistake {
  /** gRPC's description of a connection that ended, and of nothing else. */
  private static final String CLOSED = "Network closed for unknown reason";

  /** How gRPC's description of a call begins that came while the server stopped. */
  private static final String ENDED_BY_SERVER = "Abrupt GOAWAY closed sent stream";

  private static final Pattern NAMES = Pattern.compile("subjectAlternativeNames=\\[(.*?)]");

  private Mistake() {}

  /** Explains a status that no server sent. {@code sent}: whether the call had been sent. */
  static Status explained(Status received, Pool.Target target, boolean sent) {
    Status status = isBrokenConnection(received) ? unavailable(received) : received;
    if (status.getCode() != Status.Code.UNAVAILABLE) {
      return status;
    }
    String address = target.address();
    if (sent) {
      return explained(status, "the connection to " + address + " broke");
    }
    return mismatch(status, target)
        .map(text -> status.withDescription(text).withCause(new Mismatch(text, status.getCause())))
        .or(() -> network(status, address).map(status::withDescription))
        .orElseGet(() -> explained(status, "no connection to " + address));
  }

  /** Whether another attempt would fail for the same reason. */
  static boolean isLasting(Throwable failure) {
    return Status.fromThrowable(failure).getCause() instanceof Mismatch;
  }

  /** TLS is set up differently at the server. */
  private static final class Mismatch extends IOException {
    private static final long serialVersionUID = 1L;

    Mismatch(String message, Throwable cause) {
      super(message, cause);
    }
  }

  /**
   * gRPC reports a broken connection as {@code UNKNOWN: channel closed} if a second write fails
   * after the first: see grpc-java issue 10120. If the server ended it while it took no more calls,
   * the code is INTERNAL.
   */
  private static boolean isBrokenConnection(Status status) {
    return switch (status.getCode()) {
      case UNKNOWN -> status.getCause() instanceof ClosedChannelException;
      case INTERNAL ->
          Objects.requireNonNullElse(status.getDescription(), "").startsWith(ENDED_BY_SERVER);
      default -> false;
    };
  }

  private static Status unavailable(Status closed) {
    return Status.UNAVAILABLE.withDescription(CLOSED).withCause(closed.getCause());
  }

  private static Optional<String> mismatch(Status status, Pool.Target target) {
    String address = target.address();
    return target.encrypted() ? encrypted(status, address) : plaintext(status, address);
  }

  /** Replaces a description that says nothing by what happened and the root cause. */
  private static Status explained(Status status, String happened) {
    String description = Objects.requireNonNullElse(status.getDescription(), "");
    boolean vague = description.startsWith("io exception") || description.equals(CLOSED);
    return vague ? status.withDescription(happened + rootMessage(status)) : status;
  }

  private static Optional<String> network(Status status, String address) {
    String none = "no connection to " + address;
    if (causes(status).anyMatch(Mistake::isNoListener)) {
      return Optional.of(
          none + ": nothing listens there: is the server running, and is this its address?");
    }
    return causes(status).anyMatch(UnknownHostException.class::isInstance)
        ? Optional.of(none + ": its name was not found: check the address")
        : Optional.empty();
  }

  private static Optional<String> encrypted(Status status, String address) {
    if (causes(status).anyMatch(Mistake::isNoTls)) {
      return Optional.of(
          "the server at "
              + address
              + " does not speak TLS: connect without Options.withTls and MUNIMENT_TLS_CA, which is"
              + " possible on its own machine, or give the server a certificate");
    }
    String certificate = "the certificate of " + address;
    if (causes(status).anyMatch(Mistake::isOutOfTime)) {
      return Optional.of(certificate + " has expired, or is not valid yet: renew it");
    }
    if (causes(status).anyMatch(Mistake::isNoAuthority)) {
      return Optional.of(
          certificate
              + " is signed by an authority that is not trusted: name the file of its authority"
              + " by Options.withTls or MUNIMENT_TLS_CA");
    }
    return causes(status).anyMatch(Mistake::isOtherName)
        ? Optional.of(certificate + " is for other names: connect to one of " + names(status))
        : Optional.empty();
  }

  private static Optional<String> plaintext(Status status, String address) {
    return isSilent(status) && Handshake.isAnswered(address)
        ? Optional.of("the server at " + address + " expects TLS: " + Connection.TURN_ON)
        : Optional.empty();
  }

  private static boolean isNoListener(Throwable cause) {
    return cause instanceof ConnectException && says(cause, "Connection refused")
        || cause instanceof FileNotFoundException; // of a unix socket
  }

  private static boolean isOutOfTime(Throwable cause) {
    return cause instanceof CertificateExpiredException
        || cause instanceof CertificateNotYetValidException;
  }

  private static boolean isNoAuthority(Throwable cause) {
    return cause instanceof CertPathBuilderException || cause instanceof CertPathValidatorException;
  }

  private static boolean isOtherName(Throwable cause) {
    return cause instanceof CertificateException
        && (says(cause, "No subject alternative") || says(cause, "No name matching"));
  }

  /** Whether Netty or the runtime says that it received bytes that are not TLS. */
  private static boolean isNoTls(Throwable cause) {
    return cause instanceof SSLException
        && (says(cause, "not an SSL/TLS record") || says(cause, "unrecognized SSL message"));
  }

  /**
   * A server without TLS begins with HTTP/2 settings; one with TLS sends nothing, or an alert. If
   * it closes the connection before it has read all that was sent, that is a reset.
   */
  private static boolean isSilent(Status status) {
    return CLOSED.equals(status.getDescription())
        || causes(status)
            .anyMatch(
                cause ->
                    says(cause, "First received frame was not SETTINGS")
                        || says(cause, "Connection reset by peer"));
  }

  /** The names in a certificate, if Netty reports them; otherwise what the runtime says. */
  private static String names(Status status) {
    return causes(status)
        .map(Throwable::getMessage)
        .filter(Objects::nonNull)
        .map(NAMES::matcher)
        .filter(Matcher::find)
        .findFirst()
        .map(found -> found.group(1).replaceAll("\\b(DNS|IP):", ""))
        .orElse("those in it" + rootMessage(status));
  }

  private static String rootMessage(Status status) {
    return causes(status)
        .map(Throwable::getMessage)
        .filter(Objects::nonNull)
        .reduce((earlier, later) -> later)
        .map(": "::concat)
        .orElse("");
  }

  private static boolean says(Throwable cause, String text) {
    return cause.getMessage() != null && cause.getMessage().contains(text);
  }

  private static Stream<Throwable> causes(Status status) {
    return Stream.iterate(status.getCause(), Objects::nonNull, Throwable::getCause);
  }
}
