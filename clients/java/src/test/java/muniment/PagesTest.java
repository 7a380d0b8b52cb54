package muniment;

import static muniment.Failures.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.grpc.Status.Code;
import java.io.IOException;
import java.util.List;
import muniment.v1.ErrorReason;
import muniment.v1.ListMemoriesRequest;
import muniment.v1.ListMemoriesResponse;
import muniment.v1.Memory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Lists that come in pages, also when the taint rises meanwhile. */
class PagesTest {
  private FakeServer server;
  private HostClient host;
  private SessionClient session;

  @BeforeEach
  void start() throws IOException {
    server = new FakeServer();
    host = HostClient.connect(server.address(), "mk_host");
    session = host.session("ms_session");
  }

  @AfterEach
  void stop() {
    host.close();
    server.close();
  }

  @Test
  void pagesAreFollowed() {
    server.script(
        "ListMemories",
        ListMemoriesResponse.newBuilder().setNextPageToken("second").build(),
        ListMemoriesResponse.getDefaultInstance());

    long pages =
        Pages.of(
                token -> session.listMemories(r -> r.setPageToken(token)),
                ListMemoriesResponse::getNextPageToken)
            .count();

    assertEquals(2, pages);
    var last = (ListMemoriesRequest) server.calls("ListMemories").get(1).requests().get(0);
    assertEquals("second", last.getPageToken());
  }

  /** Whole lists, each with a raise of the taint before its second page, and then one without. */
  private void scriptRaises(int raises) {
    for (int attempt = 0; attempt <= raises; attempt++) {
      var key = Memory.newBuilder().setKey("attempt " + attempt);
      server.script(
          "ListMemories",
          ListMemoriesResponse.newBuilder().setNextPageToken("2").addMemories(key).build(),
          attempt < raises
              ? failure(Code.ABORTED, "TAINT_CHANGED")
              : ListMemoriesResponse.getDefaultInstance());
    }
  }

  private List<ListMemoriesResponse> listAll(ListOption... options) {
    return Pages.all(
        token -> session.listMemories(r -> r.setPageToken(token)),
        ListMemoriesResponse::getNextPageToken,
        options);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 4})
  void aListIsReadAgainAsOftenAsTheTaintCanRise(int raises) {
    scriptRaises(raises);

    List<ListMemoriesResponse> pages = listAll(ListOption.RESTART_ON_TAINT_CHANGE);

    assertEquals(2, pages.size());
    assertEquals("attempt " + raises, pages.get(0).getMemories(0).getKey());
  }

  @Test
  void aListIsReadAgainFourTimesAtMost() {
    scriptRaises(5);

    var error =
        assertThrows(MunimentException.class, () -> listAll(ListOption.RESTART_ON_TAINT_CHANGE));

    assertEquals(ErrorReason.ERROR_REASON_TAINT_CHANGED, error.reason());
    assertEquals(10, server.calls("ListMemories").size());
  }

  @Test
  void withoutTheOptionARaisedTaintEndsAList() {
    scriptRaises(1);

    var error = assertThrows(MunimentException.class, this::listAll);

    assertEquals(ErrorReason.ERROR_REASON_TAINT_CHANGED, error.reason());
  }

  @Test
  void onlyARaisedTaintBeginsAListAnew() {
    server.script("ListMemories", failure(Code.ABORTED, "ETAG_STALE"));

    assertThrows(MunimentException.class, () -> listAll(ListOption.RESTART_ON_TAINT_CHANGE));

    assertEquals(1, server.calls("ListMemories").size());
  }

  @Test
  void everyListOfTheContractComesInPages() {
    List.of(
            Pages.all(t -> host.listAgents(r -> r.setPageToken(t)), p -> p.getNextPageToken()),
            Pages.all(t -> host.listSessions(r -> r.setPageToken(t)), p -> p.getNextPageToken()),
            Pages.all(
                t -> host.listBlockConsumers(r -> r.setPageToken(t)), p -> p.getNextPageToken()),
            Pages.all(t -> host.listReleases(r -> r.setPageToken(t)), p -> p.getNextPageToken()),
            Pages.all(t -> host.listAuditEvents(r -> r.setPageToken(t)), p -> p.getNextPageToken()),
            Pages.all(t -> session.listMemories(r -> r.setPageToken(t)), p -> p.getNextPageToken()),
            Pages.all(t -> session.listNotes(r -> r.setPageToken(t)), p -> p.getNextPageToken()),
            Pages.all(t -> session.listBlocks(r -> r.setPageToken(t)), p -> p.getNextPageToken()),
            Pages.all(t -> session.listPassages(r -> r.setPageToken(t)), p -> p.getNextPageToken()),
            Pages.all(t -> session.listVersions(r -> r.setPageToken(t)), p -> p.getNextPageToken()))
        .forEach(pages -> assertEquals(1, pages.size()));

    var lists = Contract.METHODS.values().stream().map(Contract::request);
    assertEquals(
        10,
        lists
            .filter(each -> each.getDescriptorForType().findFieldByName("page_token") != null)
            .count());
  }
}
