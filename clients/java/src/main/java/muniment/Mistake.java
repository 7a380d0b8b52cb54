package muniment;

import io.grpc.Status;
import java.io.FileNotFoundException;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.security.cert.CertPathBuilderException;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateException;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateNotYetValidException;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Stream;
import javax.net.ssl.SSLException;

/** What the failures of a connection mean, and what to do. gRPC says "io exception" of most. */
final class Mistake {
  private Mistake() {}

  /** A status without a server's answer, told as what it is. */
  static Status explained(Status status, String address, boolean sent) {
    if (status.getCode() != Status.Code.UNAVAILABLE) {
      return status;
    }
    Optional<String> description = sent ? lost(status, address) : found(status, address);
    return description.map(status::withDescription).orElse(status);
  }

  private static Optional<String> lost(Status status, String address) {
    return isVague(status)
        ? Optional.of("the connection to " + address + " was lost" + rootMessage(status))
        : Optional.empty();
  }

  private static Optional<String> found(Status status, String address) {
    return Stream.of(network(status, address), certificate(status, address), tls(status, address))
        .flatMap(Optional::stream)
        .findFirst()
        .or(
            () ->
                isVague(status)
                    ? Optional.of("there is no connection to " + address + rootMessage(status))
                    : Optional.empty());
  }

  private static Optional<String> network(Status status, String address) {
    if (causes(status).anyMatch(Mistake::isNoListener)) {
      return Optional.of(
          "nothing listens at " + address + ": is the server running, and is this its address?");
    }
    return causes(status).anyMatch(UnknownHostException.class::isInstance)
        ? Optional.of("the name in " + address + " was not found: check the address")
        : Optional.empty();
  }

  private static Optional<String> certificate(Status status, String address) {
    String certificate = "the certificate of " + address;
    if (causes(status).anyMatch(Mistake::isOutOfTime)) {
      return Optional.of(certificate + " has expired, or is not valid yet: renew it");
    }
    if (causes(status).anyMatch(Mistake::isNoAuthority)) {
      return Optional.of(
          "no authority that this client trusts has signed "
              + certificate
              + ": give the file of the server's authority to withTls, or as MUNIMENT_TLS_CA");
    }
    return last(status, Mistake::isOtherName)
        .map(
            refusal ->
                certificate
                    + (" is not for this name (" + refusal.getMessage() + ")")
                    + ": use a name in the address that is in the certificate");
  }

  private static Optional<String> tls(Status status, String address) {
    if (causes(status).anyMatch(Mistake::isNoTls)) {
      return Optional.of(
          address
              + " does not speak TLS: leave out withTls and MUNIMENT_TLS_CA, or check the port");
    }
    return isSilent(status)
        ? Optional.of(
            address
                + " closed the connection before it spoke HTTP/2: it seems to expect TLS:"
                + " use withTls, or set MUNIMENT_TLS_CA to a file with its authority")
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

  /** As Netty, or the runtime, says it of bytes that are no TLS. */
  private static boolean isNoTls(Throwable cause) {
    return cause instanceof SSLException
        && (says(cause, "not an SSL/TLS record") || says(cause, "unrecognized SSL message"));
  }

  /** A server of HTTP/2 begins with its settings; one of TLS with nothing, or with an alert. */
  private static boolean isSilent(Status status) {
    return "Network closed for unknown reason".equals(status.getDescription())
        || causes(status).anyMatch(cause -> says(cause, "First received frame was not SETTINGS"));
  }

  private static boolean isVague(Status status) {
    String description = Objects.requireNonNullElse(status.getDescription(), "");
    return description.startsWith("io exception") || description.startsWith("Network closed");
  }

  private static String rootMessage(Status status) {
    return last(status, cause -> cause.getMessage() != null)
        .map(cause -> ": " + cause.getMessage())
        .orElse("");
  }

  private static boolean says(Throwable cause, String text) {
    return cause.getMessage() != null && cause.getMessage().contains(text);
  }

  private static Optional<Throwable> last(Status status, Predicate<Throwable> wanted) {
    return causes(status).filter(wanted).reduce((earlier, later) -> later);
  }

  private static Stream<Throwable> causes(Status status) {
    return Stream.iterate(status.getCause(), Objects::nonNull, Throwable::getCause);
  }
}
