package muniment;

import static muniment.Requests.filled;

import io.grpc.Channel;
import java.time.Duration;
import java.util.function.Consumer;
import muniment.v1.AgentServiceGrpc;
import muniment.v1.ApproveReleaseRequest;
import muniment.v1.ApproveReleaseResponse;
import muniment.v1.AttachBlockRequest;
import muniment.v1.AttachBlockResponse;
import muniment.v1.AuditCheckpoint;
import muniment.v1.AuditServiceGrpc;
import muniment.v1.BlockServiceGrpc;
import muniment.v1.Classification;
import muniment.v1.CloseSessionRequest;
import muniment.v1.CloseSessionResponse;
import muniment.v1.CreateAgentRequest;
import muniment.v1.CreateAgentResponse;
import muniment.v1.CreateSharedBlockRequest;
import muniment.v1.CreateSharedBlockResponse;
import muniment.v1.DeleteAgentRequest;
import muniment.v1.DeleteAgentResponse;
import muniment.v1.DeleteSharedBlockRequest;
import muniment.v1.DeleteSharedBlockResponse;
import muniment.v1.DetachBlockRequest;
import muniment.v1.DetachBlockResponse;
import muniment.v1.EraseItemsRequest;
import muniment.v1.EraseItemsResponse;
import muniment.v1.GetAgentRequest;
import muniment.v1.GetAgentResponse;
import muniment.v1.GetAuditCheckpointRequest;
import muniment.v1.GetReleaseRequest;
import muniment.v1.GetReleaseResponse;
import muniment.v1.GetSessionRequest;
import muniment.v1.GetSessionResponse;
import muniment.v1.ListAgentsRequest;
import muniment.v1.ListAgentsResponse;
import muniment.v1.ListAuditEventsRequest;
import muniment.v1.ListAuditEventsResponse;
import muniment.v1.ListBlockConsumersRequest;
import muniment.v1.ListBlockConsumersResponse;
import muniment.v1.ListReleasesRequest;
import muniment.v1.ListReleasesResponse;
import muniment.v1.ListSessionsRequest;
import muniment.v1.ListSessionsResponse;
import muniment.v1.OpenSessionRequest;
import muniment.v1.OpenSessionResponse;
import muniment.v1.RaiseTaintRequest;
import muniment.v1.RaiseTaintResponse;
import muniment.v1.RejectReleaseRequest;
import muniment.v1.RejectReleaseResponse;
import muniment.v1.ReleaseServiceGrpc;
import muniment.v1.RenewSessionRequest;
import muniment.v1.RenewSessionResponse;
import muniment.v1.RequestReleaseRequest;
import muniment.v1.RequestReleaseResponse;
import muniment.v1.ResetSessionRequest;
import muniment.v1.ResetSessionResponse;
import muniment.v1.SessionServiceGrpc;
import muniment.v1.UndeleteItemRequest;
import muniment.v1.UndeleteItemResponse;
import muniment.v1.UpdateAgentRequest;
import muniment.v1.UpdateAgentResponse;

/**
 * What a host, the trusted runtime around a model, may do: agents, sessions, taint, sharing of
 * blocks, releases, audit. Safe to use from several threads.
 *
 * <p>Every call fills in a request, and throws {@link MunimentException} if it fails.
 */
public final class HostClient implements AutoCloseable {
  private final Calls calls;

  private HostClient(Calls calls) {
    this.calls = calls;
  }

  /**
   * A client as {@code MUNIMENT_ADDRESS} and {@code MUNIMENT_HOST_KEY} say.
   *
   * <p>With {@code MUNIMENT_TLS_CA}, a PEM file, it speaks TLS and trusts the authorities in it
   * alone.
   */
  public static HostClient fromEnvironment() {
    return fromEnvironment(Options.DEFAULT);
  }

  /**
   * A client as {@code MUNIMENT_ADDRESS} and {@code MUNIMENT_HOST_KEY} say.
   *
   * <p>With {@code MUNIMENT_TLS_CA}, a PEM file, it speaks TLS and trusts the authorities in it
   * alone, unless the options have TLS of their own.
   */
  public static HostClient fromEnvironment(Options options) {
    Settings found = Settings.find(System.getenv(), Settings.HOST_KEY);
    return connect(found.address(), found.credential(), found.over(options));
  }

  /** A client with default options: for a server on this machine. */
  public static HostClient connect(String address, String hostKey) {
    return connect(address, hostKey, Options.DEFAULT);
  }

  /**
   * A client for the holder of a host key. Nothing is sent before the first call.
   *
   * @param address {@code host:port}, {@code dns:///host:port} or {@code unix:/path}
   * @throws IllegalArgumentException if the key would leave this machine in the clear
   */
  public static HostClient connect(String address, String hostKey, Options options) {
    return new HostClient(Calls.connect(address, hostKey, options));
  }

  /** The session of a token that was kept, over the same connection. Closing it leaves it open. */
  public SessionClient session(String token) {
    return SessionClient.lent(calls, token);
  }

  /** The same client with another deadline for each call. Closing one closes both. */
  public HostClient withTimeout(Duration timeout) {
    return new HostClient(calls.within(timeout));
  }

  /** For the generated stubs: the connection with the credential, and the default deadline. */
  public Channel channel() {
    return calls.channel();
  }

  /** Creates an agent, with its first blocks; the server makes an id if none is given. */
  public CreateAgentResponse createAgent(Consumer<CreateAgentRequest.Builder> request) {
    return calls.call(
        AgentServiceGrpc.getCreateAgentMethod(),
        filled(CreateAgentRequest.newBuilder(), request).build());
  }

  /** Gets one agent. */
  public GetAgentResponse getAgent(Consumer<GetAgentRequest.Builder> request) {
    return calls.call(
        AgentServiceGrpc.getGetAgentMethod(),
        filled(GetAgentRequest.newBuilder(), request).build());
  }

  /** Lists one page of the tenant's agents, by id. */
  public ListAgentsResponse listAgents(Consumer<ListAgentsRequest.Builder> request) {
    return calls.call(
        AgentServiceGrpc.getListAgentsMethod(),
        filled(ListAgentsRequest.newBuilder(), request).build());
  }

  /** Changes what is given of an agent, and keeps the rest. */
  public UpdateAgentResponse updateAgent(Consumer<UpdateAgentRequest.Builder> request) {
    return calls.call(
        AgentServiceGrpc.getUpdateAgentMethod(),
        filled(UpdateAgentRequest.newBuilder(), request).build());
  }

  /** Erases an agent and everything of it; audit events stay. */
  public DeleteAgentResponse deleteAgent(Consumer<DeleteAgentRequest.Builder> request) {
    return calls.call(
        AgentServiceGrpc.getDeleteAgentMethod(),
        filled(DeleteAgentRequest.newBuilder(), request).build());
  }

  /** Erases items for good, with all their revisions, at every level up to the key's ceiling. */
  public EraseItemsResponse eraseItems(Consumer<EraseItemsRequest.Builder> request) {
    return calls.call(
        AgentServiceGrpc.getEraseItemsMethod(),
        filled(EraseItemsRequest.newBuilder(), request).build());
  }

  /**
   * Undeletes the item that was deleted last under a name, at the level at which it was deleted.
   */
  public UndeleteItemResponse undeleteItem(Consumer<UndeleteItemRequest.Builder> request) {
    return calls.call(
        AgentServiceGrpc.getUndeleteItemMethod(),
        filled(UndeleteItemRequest.newBuilder(), request).build());
  }

  /**
   * Opens a session.
   *
   * <p>Without a taint, it has the taint of its conversation, or PUBLIC if that is new. With one
   * below that of the conversation, it fails with {@code CONVERSATION_TAINTED}, and {@link
   * MunimentException#taint} has the latter.
   *
   * <p>Closing the client that this gives closes the session.
   */
  public SessionClient openSession(Consumer<OpenSessionRequest.Builder> request) {
    OpenSessionResponse opened =
        calls.call(
            SessionServiceGrpc.getOpenSessionMethod(),
            filled(OpenSessionRequest.newBuilder(), request).build());
    return SessionClient.opened(calls, opened.getToken(), opened.getSession());
  }

  /**
   * Opens a session that goes on for as long as its conversation does. With an empty conversation
   * id, the conversation is new.
   */
  public Conversation conversation(String agentId, String conversationId) {
    return conversation(r -> r.setAgentId(agentId).setConversationId(conversationId));
  }

  /**
   * Opens a session that goes on for as long as its conversation does. The {@code ttl}, if one is
   * given, is that of each renewal.
   */
  public Conversation conversation(Consumer<OpenSessionRequest.Builder> request) {
    OpenSessionRequest opening = filled(OpenSessionRequest.newBuilder(), request).build();
    return Conversation.open(calls, opening);
  }

  /**
   * Starts a conversation anew: closes all its sessions, and opens one at PUBLIC.
   *
   * <p>By this call the host states that it has wiped the model's context. Closing the client that
   * this gives closes the session.
   */
  public SessionClient resetSession(Consumer<ResetSessionRequest.Builder> request) {
    ResetSessionResponse opened =
        calls.call(
            SessionServiceGrpc.getResetSessionMethod(),
            filled(ResetSessionRequest.newBuilder(), request).build());
    return SessionClient.opened(calls, opened.getToken(), opened.getSession());
  }

  /** Gets a session of an agent that the key knows, up to the key's ceiling, closed ones too. */
  public GetSessionResponse getSession(Consumer<GetSessionRequest.Builder> request) {
    return calls.call(
        SessionServiceGrpc.getGetSessionMethod(),
        filled(GetSessionRequest.newBuilder(), request).build());
  }

  /** Lists one page of an agent's sessions, newest first, up to the key's ceiling. */
  public ListSessionsResponse listSessions(Consumer<ListSessionsRequest.Builder> request) {
    return calls.call(
        SessionServiceGrpc.getListSessionsMethod(),
        filled(ListSessionsRequest.newBuilder(), request).build());
  }

  /** Has a session, which may have expired, last for another while. Its token stays. */
  public RenewSessionResponse renewSession(Consumer<RenewSessionRequest.Builder> request) {
    return calls.call(
        SessionServiceGrpc.getRenewSessionMethod(),
        filled(RenewSessionRequest.newBuilder(), request).build());
  }

  /**
   * Raises the taint of a session's conversation, and so of all its sessions.
   *
   * <p>Reveal to the model only after this has returned.
   */
  public RaiseTaintResponse raiseTaint(Consumer<RaiseTaintRequest.Builder> request) {
    return calls.call(
        SessionServiceGrpc.getRaiseTaintMethod(),
        filled(RaiseTaintRequest.newBuilder(), request).build());
  }

  /** Closes a session: its token is invalid from then on. */
  public CloseSessionResponse closeSession(Consumer<CloseSessionRequest.Builder> request) {
    return calls.call(
        SessionServiceGrpc.getCloseSessionMethod(),
        filled(CloseSessionRequest.newBuilder(), request).build());
  }

  /** Declares a block of an agent as shared, and makes its PUBLIC version when there is none. */
  public CreateSharedBlockResponse createSharedBlock(
      Consumer<CreateSharedBlockRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getCreateSharedBlockMethod(),
        filled(CreateSharedBlockRequest.newBuilder(), request).build());
  }

  /** Ends a declaration, and with it all attachments; the owner keeps its block. */
  public DeleteSharedBlockResponse deleteSharedBlock(
      Consumer<DeleteSharedBlockRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getDeleteSharedBlockMethod(),
        filled(DeleteSharedBlockRequest.newBuilder(), request).build());
  }

  /** Lets another agent of the tenant read a shared block. */
  public AttachBlockResponse attachBlock(Consumer<AttachBlockRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getAttachBlockMethod(),
        filled(AttachBlockRequest.newBuilder(), request).build());
  }

  /** Lets an agent read a shared block no more. */
  public DetachBlockResponse detachBlock(Consumer<DetachBlockRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getDetachBlockMethod(),
        filled(DetachBlockRequest.newBuilder(), request).build());
  }

  /** Lists one page of the agents that a shared block is attached to, by id. */
  public ListBlockConsumersResponse listBlockConsumers(
      Consumer<ListBlockConsumersRequest.Builder> request) {
    return calls.call(
        BlockServiceGrpc.getListBlockConsumersMethod(),
        filled(ListBlockConsumersRequest.newBuilder(), request).build());
  }

  /**
   * Asks for the release of an item to a lower level, or to TRUSTED; another key must approve it.
   */
  public RequestReleaseResponse requestRelease(Consumer<RequestReleaseRequest.Builder> request) {
    return calls.call(
        ReleaseServiceGrpc.getRequestReleaseMethod(),
        filled(RequestReleaseRequest.newBuilder(), request).build());
  }

  /** Approves a release; the last approval that is needed writes the item at its new label. */
  public ApproveReleaseResponse approveRelease(Consumer<ApproveReleaseRequest.Builder> request) {
    return calls.call(
        ReleaseServiceGrpc.getApproveReleaseMethod(),
        filled(ApproveReleaseRequest.newBuilder(), request).build());
  }

  /** Rejects a release, or withdraws one's own. */
  public RejectReleaseResponse rejectRelease(Consumer<RejectReleaseRequest.Builder> request) {
    return calls.call(
        ReleaseServiceGrpc.getRejectReleaseMethod(),
        filled(RejectReleaseRequest.newBuilder(), request).build());
  }

  /** A release and, while it is open, the text that it would write. */
  public GetReleaseResponse getRelease(Consumer<GetReleaseRequest.Builder> request) {
    return calls.call(
        ReleaseServiceGrpc.getGetReleaseMethod(),
        filled(GetReleaseRequest.newBuilder(), request).build());
  }

  /** Lists one page of releases, newest first. */
  public ListReleasesResponse listReleases(Consumer<ListReleasesRequest.Builder> request) {
    return calls.call(
        ReleaseServiceGrpc.getListReleasesMethod(),
        filled(ListReleasesRequest.newBuilder(), request).build());
  }

  /** Lists one page of what was done, newest first, up to the key's ceiling. */
  public ListAuditEventsResponse listAuditEvents(Consumer<ListAuditEventsRequest.Builder> request) {
    return calls.call(
        AuditServiceGrpc.getListAuditEventsMethod(),
        filled(ListAuditEventsRequest.newBuilder(), request).build());
  }

  /** The last seal of the audit log at one level. Keep it outside of the database's reach. */
  public AuditCheckpoint getAuditCheckpoint(Classification classification) {
    return calls
        .call(
            AuditServiceGrpc.getGetAuditCheckpointMethod(),
            GetAuditCheckpointRequest.newBuilder().setClassification(classification).build())
        .getCheckpoint();
  }

  /** Closes the connection, also that of sessions opened over it. On the server they stay open. */
  @Override
  public void close() {
    calls.close();
  }
}
