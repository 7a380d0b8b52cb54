package muniment;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.MethodDescriptor;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import muniment.v1.AddNoteRequest;
import muniment.v1.EditNotesRequest;
import muniment.v1.SaveMemoriesRequest;
import muniment.v1.StorePassageRequest;

/**
 * Which calls may be made again, after which failures, and when.
 *
 * <p>The channel repeats by itself only what never reached the server. Everything else is decided
 * here, from what the contract says about each method.
 */
final class Repetition {
  /**
   * Idempotent, but the second answer differs from the first (not found, or the credential is
   * gone), so whoever gets it after a silent repetition is told of a failure that was a success.
   */
  private static final Set<String> SECOND_ANSWER_DIFFERS =
      Set.of(
          "CloseSession",
          "DeleteAgent",
          "DeleteBlock",
          "DeleteMemory",
          "DeleteNote",
          "DeletePassage",
          "DeleteSharedBlock",
          "DetachBlock");

  private static final double FIRST_PAUSE = 0.1;
  private static final double LONGEST_PAUSE = 2;

  private Repetition() {}

  /** Whether a request may be sent again if it is unknown whether it was executed. */
  static boolean isSafe(MethodDescriptor<?, ?> method, Message request) {
    if (method.isSafe()) {
      return true;
    }
    // What is added under an id of the client's is added once.
    if (request instanceof AddNoteRequest note) {
      return !note.getNoteId().isEmpty();
    }
    if (request instanceof SaveMemoriesRequest save) {
      return save.getMemoriesList().stream().noneMatch(Repetition::hasEtag);
    }
    if (request instanceof StorePassageRequest passage) {
      return !passage.getPassageId().isEmpty();
    }
    if (request instanceof EditNotesRequest edits) {
      return edits.getValidateOnly() || onlyAddsUnderIds(edits);
    }
    return method.isIdempotent()
        && !SECOND_ANSWER_DIFFERS.contains(method.getBareMethodName())
        && !hasEtag(request);
  }

  /**
   * The pause after an attempt; the first is number 1.
   *
   * <p>It doubles each time, less up to half by chance, so that clients do not come back all at
   * once. The longest bounds what the clients of a server that is away or overloaded send: at most
   * one attempt per call in one to two seconds.
   */
  static Duration pauseAfter(int attempt) {
    double longest = Math.min(FIRST_PAUSE * Math.pow(2, attempt - 1), LONGEST_PAUSE);
    double pause = longest * ThreadLocalRandom.current().nextDouble(0.5, 1);
    return Duration.ofNanos((long) (pause * 1e9));
  }

  /** Whether the same call may succeed a little later. */
  static boolean mayPass(MunimentException error) {
    return error.code() == Code.UNAVAILABLE
        || error.code() == Code.RESOURCE_EXHAUSTED && error.retryAfter().isPresent();
  }

  /**
   * A note whose content is there already is not added, but would be the second time if a later
   * edit has changed that content: hence all.
   */
  private static boolean onlyAddsUnderIds(EditNotesRequest edits) {
    return edits.getEditsList().stream().noneMatch(edit -> edit.getAdd().getNoteId().isEmpty());
  }

  /** If the first attempt did arrive, the etag is stale at the second. */
  private static boolean hasEtag(Message request) {
    FieldDescriptor etag = request.getDescriptorForType().findFieldByName("etag");
    return etag != null && !request.getField(etag).equals(etag.getDefaultValue());
  }
}
