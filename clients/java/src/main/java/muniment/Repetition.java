package muniment;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.MethodDescriptor;
import io.grpc.Status.Code;
import io.grpc.protobuf.ProtoMethodDescriptorSupplier;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import muniment.v1.AddNoteRequest;
import muniment.v1.EditNotesRequest;
import muniment.v1.Policy;
import muniment.v1.SaveMemoriesRequest;
import muniment.v1.StorePassageRequest;

/**
 * Which calls may be made again, after which failures, and when.
 *
 * <p>The channel repeats by itself only what never reached the server. Everything else is decided
 * here, from what the contract says about each method.
 */
final class Repetition {
  private static final double FIRST_PAUSE = 0.1;
  private static final double LONGEST_PAUSE = 2;

  private Repetition() {}

  /** Whether a request may be sent again if it is unknown whether it was executed. */
  static boolean isSafe(MethodDescriptor<?, ?> method, Message request) {
    return mayBeRepeated(method) && !hasEtag(request) && doesTheSameAgain(request);
  }

  /** Whether the contract lets a client send requests of this method again. */
  private static boolean mayBeRepeated(MethodDescriptor<?, ?> method) {
    return method.getSchemaDescriptor() instanceof ProtoMethodDescriptorSupplier schema
        && schema.getMethodDescriptor().getOptions().getExtension(Policy.policy).getMayBeRepeated();
  }

  /** What the contract cannot say of a method, because it depends on the request. */
  private static boolean doesTheSameAgain(Message request) {
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
    return true;
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
    return error.code() == Code.UNAVAILABLE && !Mistake.isLasting(error)
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
