package muniment;

import static muniment.Requests.filled;
import static muniment.Requests.newId;

import io.grpc.Channel;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import muniment.v1.AddNoteRequest;
import muniment.v1.AddNoteResponse;
import muniment.v1.BlockServiceGrpc;
import muniment.v1.CloseSessionRequest;
import muniment.v1.DeleteBlockRequest;
import muniment.v1.DeleteBlockResponse;
import muniment.v1.DeleteMemoriesRequest;
import muniment.v1.DeleteMemoriesResponse;
import muniment.v1.DeleteMemoryRequest;
import muniment.v1.DeleteMemoryResponse;
import muniment.v1.DeleteNoteRequest;
import muniment.v1.DeleteNoteResponse;
import muniment.v1.DeletePassageRequest;
import muniment.v1.DeletePassageResponse;
import muniment.v1.DeletePassagesRequest;
import muniment.v1.DeletePassagesResponse;
import muniment.v1.EditBlockRequest;
import muniment.v1.EditBlockResponse;
import muniment.v1.EditNotesRequest;
import muniment.v1.EditNotesResponse;
import muniment.v1.GetBlockRequest;
import muniment.v1.GetBlockResponse;
import muniment.v1.GetMemoryRequest;
import muniment.v1.GetMemoryResponse;
import muniment.v1.GetPassageRequest;
import muniment.v1.GetPassageResponse;
import muniment.v1.GetSessionRequest;
import muniment.v1.GetSessionResponse;
import muniment.v1.ImportPassagesRequest;
import muniment.v1.ImportPassagesResponse;
import muniment.v1.ListBlocksRequest;
import muniment.v1.ListBlocksResponse;
import muniment.v1.ListMemoriesRequest;
import muniment.v1.ListMemoriesResponse;
import muniment.v1.ListNotesRequest;
import muniment.v1.ListNotesResponse;
import muniment.v1.ListPassagesRequest;
import muniment.v1.ListPassagesResponse;
import muniment.v1.ListVersionsRequest;
import muniment.v1.ListVersionsResponse;
import muniment.v1.MemoryServiceGrpc;
import muniment.v1.NoteEdit;
import muniment.v1.NoteServiceGrpc;
import muniment.v1.PassageServiceGrpc;
import muniment.v1.PromptServiceGrpc;
import muniment.v1.RenameMemoryRequest;
import muniment.v1.RenameMemoryResponse;
import muniment.v1.RenderPromptRequest;
import muniment.v1.RenderPromptResponse;
import muniment.v1.SaveMemoriesRequest;
import muniment.v1.SaveMemoriesResponse;
import muniment.v1.SaveMemoryRequest;
import muniment.v1.SaveMemoryResponse;
import muniment.v1.SearchMemoriesRequest;
import muniment.v1.SearchMemoriesResponse;
import muniment.v1.SearchNotesRequest;
import muniment.v1.SearchNotesResponse;
import muniment.v1.SearchPassagesRequest;
import muniment.v1.SearchPassagesResponse;
import muniment.v1.Session;
import muniment.v1.SessionServiceGrpc;
import muniment.v1.StorePassageRequest;
import muniment.v1.StorePassageResponse;
import muniment.v1.UpdateBlockRequest;
import muniment.v1.UpdateBlockResponse;
import muniment.v1.UpdateNoteRequest;
import muniment.v1.UpdateNoteResponse;
import muniment.v1.VersionServiceGrpc;

/**
 * What one session of an agent may do: write at its taint, and read up to it. Safe to use from
 * several threads.
 *
 * <p>Every call fills in a request, and throws {@link MunimentException} if it fails.
 */
public sealed class SessionClient implements AutoCloseable permits Conversation {
  /** Whose the session is, and whose the connection: it says what closing means. */
  enum Origin {
    /** Of a host client, which opened the session for this one: the session is closed. */
    OPENED,
    /** Of a host client, for a token: nothing is closed. */
    LENT,
    /** Of nobody else, for a token: the connection is closed. */
    CONNECTED
  }

  private final Calls calls;
  private final String token;
  private final Origin origin;
  private final Optional<Session> opened;
  private volatile String sessionId;

  private SessionClient(Calls calls, String token, Origin origin, Optional<Session> opened) {
    this.calls = calls;
    this.token = token;
    this.origin = origin;
    this.opened = opened;
    this.sessionId = opened.map(Session::getSessionId).orElse("");
  }

  /** For a subclass, which has the rest. */
  SessionClient(Calls calls, Origin origin) {
    this(calls, "", origin, Optional.empty());
  }

  static SessionClient opened(Calls host, String token, Session session) {
    return new SessionClient(host.as(token), token, Origin.OPENED, Optional.of(session));
  }

  static SessionClient lent(Calls host, String token) {
    return new SessionClient(host.as(token), token, Origin.LENT, Optional.empty());
  }

  /**
   * A client as {@code MUNIMENT_ADDRESS} and {@code MUNIMENT_TOKEN} say.
   *
   * <p>With {@code MUNIMENT_TLS_CA}, a PEM file, it speaks TLS and trusts the authorities in it
   * alone.
   */
  public static SessionClient fromEnvironment() {
    return fromEnvironment(Options.DEFAULT);
  }

  /**
   * A client as {@code MUNIMENT_ADDRESS} and {@code MUNIMENT_TOKEN} say.
   *
   * <p>With {@code MUNIMENT_TLS_CA}, a PEM file, it speaks TLS and trusts the authorities in it
   * alone, unless the options have TLS of their own.
   */
  public static SessionClient fromEnvironment(Options options) {
    Settings found = Settings.find(System.getenv(), Settings.TOKEN);
    return connect(found.address(), found.credential(), found.over(options));
  }

  /** A client with default options: for a server on this machine. */
  public static SessionClient connect(String address, String token) {
    return connect(address, token, Options.DEFAULT);
  }

  /**
   * A client for the holder of a session's token. Nothing is sent before the first call.
   *
   * @param address {@code host:port}, {@code dns:///host:port} or {@code unix:/path}
   * @throws IllegalArgumentException if the token would leave this machine in the clear
   */
  public static SessionClient connect(String address, String token, Options options) {
    Calls calls = Calls.connect(address, token, options);
    return new SessionClient(calls, token, Origin.CONNECTED, Optional.empty());
  }

  /** The credential. Whoever has it is this session. */
  public String token() {
    return token;
  }

  /**
   * The session as it was when its host opened or reset it; a host may have raised its taint since.
   * Empty: it was made from a token.
   */
  public Optional<Session> opened() {
    return opened;
  }

  /** The id. Of a session made from a token, the first time asks the server. */
  public String sessionId() {
    if (sessionId.isEmpty()) {
      sessionId = getSession(self -> {}).getSession().getSessionId();
    }
    return sessionId;
  }

  /** The same session with another deadline for each call. Closing one closes both. */
  public SessionClient withTimeout(Duration timeout) {
    return new SessionClient(calls.within(timeout), token, origin, opened);
  }

  /** For the generated stubs: the connection with the credential, and the default deadline. */
  public Channel channel() {
    return calls.channel();
  }

  /** Gets the session as it is now. */
  public GetSessionResponse getSession(Consumer<GetSessionRequest.Builder> request) {
    return calls.call(
        SessionServiceGrpc.getGetSessionMethod(),
        filled(GetSessionRequest.newBuilder(), request).build());
  }

  /** Creates or replaces a memory at the session's own level. */
  public SaveMemoryResponse saveMemory(Consumer<SaveMemoryRequest.Builder> request) {
    return calls.call(
        MemoryServiceGrpc.getSaveMemoryMethod(),
        filled(SaveMemoryRequest.newBuilder(), request).build());
  }

  /** Gets one memory at its highest visible level. */
  public GetMemoryResponse getMemory(Consumer<GetMemoryRequest.Builder> request) {
    return calls.call(
        MemoryServiceGrpc.getGetMemoryMethod(),
        filled(GetMemoryRequest.newBuilder(), request).build());
  }

  /** Lists one page of the visible memories, by key. */
  public ListMemoriesResponse listMemories(Consumer<ListMemoriesRequest.Builder> request) {
    return calls.call(
        MemoryServiceGrpc.getListMemoriesMethod(),
        filled(ListMemoriesRequest.newBuilder(), request).build());
  }

  /** Finds memories by words, best first. */
  public SearchMemoriesResponse searchMemories(Consumer<SearchMemoriesRequest.Builder> request) {
    return calls.call(
        MemoryServiceGrpc.getSearchMemoriesMethod(),
        filled(SearchMemoriesRequest.newBuilder(), request).build());
  }

  /** Deletes the session's own-level version of a memory. */
  public DeleteMemoryResponse deleteMemory(Consumer<DeleteMemoryRequest.Builder> request) {
    return calls.call(
        MemoryServiceGrpc.getDeleteMemoryMethod(),
        filled(DeleteMemoryRequest.newBuilder(), request).build());
  }

  /** Saves up to 100 memories in one transaction, all or none. */
  public SaveMemoriesResponse saveMemories(Consumer<SaveMemoriesRequest.Builder> request) {
    return calls.call(
        MemoryServiceGrpc.getSaveMemoriesMethod(),
        filled(SaveMemoriesRequest.newBuilder(), request).build());
  }

  /** Deletes the session's own-level memories with a tag, at most 1,000 a call. */
  public DeleteMemoriesResponse deleteMemories(Consumer<DeleteMemoriesRequest.Builder> request) {
    return calls.call(
        MemoryServiceGrpc.getDeleteMemoriesMethod(),
        filled(DeleteMemoriesRequest.newBuilder(), request).build());
  }

  /** Gives the session's own-level version of a memory another key. */
  public RenameMemoryResponse renameMemory(Consumer<RenameMemoryRequest.Builder> request) {
    return calls.call(
        MemoryServiceGrpc.getRenameMemoryMethod(),
        filled(RenameMemoryRequest.newBuilder(), request).build());
  }

  /** Adds a note, under an id of the client's if none is given, so that it is added once. */
  public AddNoteResponse addNote(Consumer<AddNoteRequest.Builder> request) {
    AddNoteRequest.Builder note = filled(AddNoteRequest.newBuilder(), request);
    if (note.getNoteId().isEmpty()) {
      note.setNoteId(newId());
    }
    return calls.call(NoteServiceGrpc.getAddNoteMethod(), note.build());
  }

  /** Replaces the content of a note. */
  public UpdateNoteResponse updateNote(Consumer<UpdateNoteRequest.Builder> request) {
    return calls.call(
        NoteServiceGrpc.getUpdateNoteMethod(),
        filled(UpdateNoteRequest.newBuilder(), request).build());
  }

  /** Deletes the session's own-level version of a note. */
  public DeleteNoteResponse deleteNote(Consumer<DeleteNoteRequest.Builder> request) {
    return calls.call(
        NoteServiceGrpc.getDeleteNoteMethod(),
        filled(DeleteNoteRequest.newBuilder(), request).build());
  }

  /** Finds notes of a tier by words, best first. */
  public SearchNotesResponse searchNotes(Consumer<SearchNotesRequest.Builder> request) {
    return calls.call(
        NoteServiceGrpc.getSearchNotesMethod(),
        filled(SearchNotesRequest.newBuilder(), request).build());
  }

  /** Lists one page of a tier's visible notes, oldest first. */
  public ListNotesResponse listNotes(Consumer<ListNotesRequest.Builder> request) {
    return calls.call(
        NoteServiceGrpc.getListNotesMethod(),
        filled(ListNotesRequest.newBuilder(), request).build());
  }

  /** Makes several edits to a tier, all or none. Notes are added as by {@link #addNote}. */
  public EditNotesResponse editNotes(Consumer<EditNotesRequest.Builder> request) {
    EditNotesRequest.Builder edits = filled(EditNotesRequest.newBuilder(), request);
    for (NoteEdit.Builder edit : edits.getEditsBuilderList()) {
      if (edit.hasAdd() && edit.getAdd().getNoteId().isEmpty()) {
        edit.getAddBuilder().setNoteId(newId());
      }
    }
    return calls.call(NoteServiceGrpc.getEditNotesMethod(), edits.build());
  }

  /** Lists one page of the visible blocks, by label. */
  public ListBlocksResponse listBlocks(Consumer<ListBlocksRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getListBlocksMethod(),
        filled(ListBlocksRequest.newBuilder(), request).build());
  }

  /** Gets one block by label. */
  public GetBlockResponse getBlock(Consumer<GetBlockRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getGetBlockMethod(),
        filled(GetBlockRequest.newBuilder(), request).build());
  }

  /** Creates or replaces the session's own-level version of a block. */
  public UpdateBlockResponse updateBlock(Consumer<UpdateBlockRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getUpdateBlockMethod(),
        filled(UpdateBlockRequest.newBuilder(), request).build());
  }

  /** Changes part of a block. */
  public EditBlockResponse editBlock(Consumer<EditBlockRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getEditBlockMethod(),
        filled(EditBlockRequest.newBuilder(), request).build());
  }

  /** Deletes the session's own-level version of a block. */
  public DeleteBlockResponse deleteBlock(Consumer<DeleteBlockRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getDeleteBlockMethod(),
        filled(DeleteBlockRequest.newBuilder(), request).build());
  }

  /** Stores a passage, under an id of the client's if none is given, so that it is stored once. */
  public StorePassageResponse storePassage(Consumer<StorePassageRequest.Builder> request) {
    StorePassageRequest.Builder passage = filled(StorePassageRequest.newBuilder(), request);
    if (passage.getPassageId().isEmpty()) {
      passage.setPassageId(newId());
    }
    return calls.call(PassageServiceGrpc.getStorePassageMethod(), passage.build());
  }

  /**
   * Stores a stream of passages, in its order, all at one taint.
   *
   * <p>The passages are taken in the caller's thread, as fast as the server takes them; what their
   * iterator throws ends the import and reaches the caller. The deadline is for the whole stream. A
   * failure says by {@link MunimentException#importProgress} how many are stored all the same. With
   * an id in each passage an import may be repeated; the client never does it by itself.
   */
  public ImportPassagesResponse importPassages(Iterable<StorePassageRequest> passages) {
    return calls.stream(
        PassageServiceGrpc.getImportPassagesMethod(), importRequests(passages).iterator());
  }

  /** The same, retried like other safe calls: each of the passages must have an id. */
  ImportPassagesResponse importAgain(List<StorePassageRequest> passages) {
    return calls.streamAgain(
        PassageServiceGrpc.getImportPassagesMethod(), importRequests(passages).toList());
  }

  private static Stream<ImportPassagesRequest> importRequests(
      Iterable<StorePassageRequest> passages) {
    return StreamSupport.stream(passages.spliterator(), false)
        .map(passage -> ImportPassagesRequest.newBuilder().setPassage(passage).build());
  }

  /** Gets one passage by id. */
  public GetPassageResponse getPassage(Consumer<GetPassageRequest.Builder> request) {
    return calls.call(
        PassageServiceGrpc.getGetPassageMethod(),
        filled(GetPassageRequest.newBuilder(), request).build());
  }

  /** Lists one page of the visible passages, newest first. */
  public ListPassagesResponse listPassages(Consumer<ListPassagesRequest.Builder> request) {
    return calls.call(
        PassageServiceGrpc.getListPassagesMethod(),
        filled(ListPassagesRequest.newBuilder(), request).build());
  }

  /** Finds passages by words, best first. */
  public SearchPassagesResponse searchPassages(Consumer<SearchPassagesRequest.Builder> request) {
    return calls.call(
        PassageServiceGrpc.getSearchPassagesMethod(),
        filled(SearchPassagesRequest.newBuilder(), request).build());
  }

  /** Deletes a passage of the session's own level. */
  public DeletePassageResponse deletePassage(Consumer<DeletePassageRequest.Builder> request) {
    return calls.call(
        PassageServiceGrpc.getDeletePassageMethod(),
        filled(DeletePassageRequest.newBuilder(), request).build());
  }

  /**
   * Deletes the passages of the session's own level with a tag or of a thread, at most 1,000 a
   * call.
   */
  public DeletePassagesResponse deletePassages(Consumer<DeletePassagesRequest.Builder> request) {
    return calls.call(
        PassageServiceGrpc.getDeletePassagesMethod(),
        filled(DeletePassagesRequest.newBuilder(), request).build());
  }

  /** Renders the visible blocks and notes as one text. */
  public RenderPromptResponse renderPrompt(Consumer<RenderPromptRequest.Builder> request) {
    return calls.call(
        PromptServiceGrpc.getRenderPromptMethod(),
        filled(RenderPromptRequest.newBuilder(), request).build());
  }

  /** Lists the version of one item at each visible level, newest first. */
  public ListVersionsResponse listVersions(Consumer<ListVersionsRequest.Builder> request) {
    return calls.call(
        VersionServiceGrpc.getListVersionsMethod(),
        filled(ListVersionsRequest.newBuilder(), request).build());
  }

  /**
   * Closes the session: its token is invalid from then on.
   *
   * <p>Over already, by its host, a reset, or time, it is {@code ERROR_REASON_CREDENTIAL_INVALID}.
   */
  public void closeSession() {
    calls.call(
        SessionServiceGrpc.getCloseSessionMethod(), CloseSessionRequest.getDefaultInstance());
  }

  /**
   * Ends what began with this client.
   *
   * <p>A session that was opened or reset into being is closed, unless it is over already. One made
   * from a token belongs to whoever opened it: only a connection of its own is closed.
   */
  @Override
  public void close() {
    switch (origin) {
      case OPENED -> closeUnlessOver();
      case CONNECTED -> calls.close();
      case LENT -> {}
    }
  }

  private void closeUnlessOver() {
    try {
      closeSession();
    } catch (MunimentException error) {
      if (error.code() != Code.UNAUTHENTICATED) {
        throw error;
      }
    }
  }
}
