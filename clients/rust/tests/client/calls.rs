//! What the client does with calls, seen by a server and by its caller.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use crate::fake::{Answer, Call, FakeServer, message};
use muniment::{
    Client, ClientBuilder, Code,
    v1::{
        AddNoteRequest, BudgetEntry, BudgetExceeded, Classification, ConversationTainted, CreateAgentRequest,
        CreateAgentResponse, ErrorReason, GetMemoryRequest, GetMemoryResponse, ImportPassagesRequest,
        ImportPassagesResponse, ImportProgress, Memory, OpenSessionRequest, OpenSessionResponse,
        SaveMemoryRequest, SaveMemoryResponse, StorePassageRequest, Usage,
    },
};
use prost::{Message, Name};
use prost_types::Any;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt, pb};

fn client(server: &FakeServer) -> Client {
    ClientBuilder::new(&server.address).credential("ms_secret").connect().unwrap()
}

fn get() -> GetMemoryRequest {
    GetMemoryRequest { key: "tea".into() }
}

fn save() -> SaveMemoryRequest {
    SaveMemoryRequest { key: "tea".into(), content: "Assam".into(), ..Default::default() }
}

/// Away the first time, back the second.
fn away_once(response: impl Message + Clone + 'static) -> impl Fn(&Call, usize) -> Answer {
    move |_, earlier| match earlier {
        0 => Answer::Error(Status::unavailable("the database is away")),
        _ => message(response.clone()),
    }
}

/// A status as the server makes it: ErrorInfo, and then *detail*.
pub fn status<D: Message + Name>(code: Code, reason: &str, detail: &D) -> Status {
    let info = pb::ErrorInfo { reason: reason.into(), domain: "muniment.v1".into(), ..Default::default() };
    let details = vec![
        Any { type_url: "type.googleapis.com/google.rpc.ErrorInfo".into(), value: info.encode_to_vec() },
        Any { type_url: format!("type.googleapis.com/{}", D::full_name()), value: detail.encode_to_vec() },
    ];
    let status = pb::Status { code: code as i32, message: String::new(), details };
    Status::with_details(code, "refused", status.encode_to_vec().into())
}

#[tokio::test]
async fn a_call_has_credential_deadline_and_message() {
    let memory = Memory { content: "Assam".into(), ..Default::default() };
    let response = GetMemoryResponse { memory: Some(memory), ..Default::default() };
    let server = FakeServer::start(move |_, _| message(response.clone())).await;

    let got = client(&server).get_memory(get()).await.unwrap();

    assert_eq!(got.memory.unwrap().content, "Assam");
    let call = &server.calls()[0];
    assert_eq!(call.method, "MemoryService/GetMemory");
    assert_eq!(call.messages::<GetMemoryRequest>(), [get()]);
    assert_eq!(call.metadata["authorization"], "Bearer ms_secret");
    assert!(call.metadata["user-agent"].to_str().unwrap().starts_with("muniment-rust/"));
    let timeout = call.metadata["grpc-timeout"].to_str().unwrap();
    let microseconds: u64 = timeout.strip_suffix('u').unwrap().parse().unwrap();
    assert!((5_000_000..=10_000_000).contains(&microseconds), "{timeout}");
}

#[tokio::test]
async fn another_credential_goes_over_the_same_client() {
    let server = FakeServer::start(|_, _| message(GetMemoryResponse::default())).await;
    let host = client(&server);

    host.with_credential("ms_other").unwrap().get_memory(get()).await.unwrap();
    host.get_memory(get()).await.unwrap();

    let sent = server.calls().into_iter().map(|call| call.metadata["authorization"].clone());
    assert_eq!(sent.collect::<Vec<_>>(), ["Bearer ms_other", "Bearer ms_secret"]);
}

#[tokio::test]
async fn a_credential_that_no_header_carries_is_refused() {
    let server = FakeServer::start(|_, _| Answer::Silence).await;
    for credential in ["", "ms_1\n", "ms 1", "mß"] {
        assert!(client(&server).with_credential(credential).is_err());
    }
}

#[tokio::test]
async fn a_deadline_ends_a_call() {
    let server = FakeServer::start(|_, _| Answer::Silence).await;
    let client = client(&server).with_timeout(Duration::from_millis(50)).unwrap();

    let unary = client.get_memory(get()).await.unwrap_err();
    let stream = client.import_passages(tokio_stream::pending()).await.unwrap_err();

    assert_eq!(unary.code(), Code::DeadlineExceeded);
    assert_eq!(stream.code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn a_deadline_is_more_than_now_and_at_most_a_day() {
    let server = FakeServer::start(|_, _| Answer::Silence).await;
    let day = Duration::from_secs(86400);
    assert!(client(&server).with_timeout(day).is_ok());
    for timeout in [Duration::ZERO, day + Duration::from_nanos(1), Duration::MAX] {
        assert!(client(&server).with_timeout(timeout).is_err());
    }
}

#[tokio::test]
async fn a_read_is_made_again_when_the_server_is_away() {
    let server = FakeServer::start(away_once(GetMemoryResponse::default())).await;
    client(&server).get_memory(get()).await.unwrap();
    assert_eq!(server.calls().len(), 2);
}

/// Both may have been executed.
#[tokio::test]
async fn a_call_that_the_server_breaks_off_is_made_again_where_that_is_safe() {
    let server = FakeServer::start(|_, earlier| match earlier {
        0 => Answer::Error(Status::cancelled("")),
        _ => message(GetMemoryResponse::default()),
    })
    .await;
    client(&server).get_memory(get()).await.unwrap();
    assert_eq!(server.calls().len(), 2);

    let server = FakeServer::start(|_, _| Answer::Error(Status::cancelled(""))).await;
    let error = client(&server).create_agent(CreateAgentRequest::default()).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn an_idempotent_write_is_made_again_unless_it_has_an_etag() {
    let server = FakeServer::start(away_once(SaveMemoryResponse::default())).await;
    client(&server).save_memory(save()).await.unwrap();
    assert_eq!(server.calls().len(), 2);

    let server = FakeServer::start(away_once(SaveMemoryResponse::default())).await;
    let with_etag = SaveMemoryRequest { etag: "1".into(), ..save() };
    let error = client(&server).save_memory(with_etag).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn a_write_that_would_do_more_the_second_time_is_made_once() {
    let server = FakeServer::start(away_once(CreateAgentResponse::default())).await;
    let error = client(&server).create_agent(CreateAgentRequest::default()).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(server.calls().len(), 1);
}

/// The deadline may cut off the last attempt, if hardly any time was left: then the call is made once more.
#[tokio::test]
async fn a_call_is_made_until_its_deadline_is_near_and_once_without_retries() {
    let server = FakeServer::start(|_, _| Answer::Error(Status::unavailable(""))).await;
    let hurried = client(&server).with_timeout(Duration::from_secs(6)).unwrap();

    let mut code = Code::Ok;
    for _ in 0..3 {
        let before = server.calls().len();
        code = hurried.get_memory(get()).await.unwrap_err().code();
        let calls = server.calls().len() - before;
        assert!((5..=10).contains(&calls), "{calls} calls");
        if code != Code::DeadlineExceeded {
            break;
        }
    }
    assert_eq!(code, Code::Unavailable);

    let before = server.calls().len();
    client(&server).without_retries().get_memory(get()).await.unwrap_err();
    assert_eq!(server.calls().len(), before + 1);
}

/// Nothing was sent, so that every call may be made again.
#[tokio::test]
async fn any_call_waits_for_a_server_that_is_not_there_yet() {
    let address = free_address().await;
    let early = ClientBuilder::new(&address).connect().unwrap();
    let call = tokio::spawn(async move { early.create_agent(CreateAgentRequest::default()).await });
    tokio::time::sleep(Duration::from_millis(300)).await;

    let server = FakeServer::start_at(&address, |_, _| message(CreateAgentResponse::default())).await;

    call.await.unwrap().unwrap();
    assert_eq!(server.calls().len(), 1);
}

/// With a port outside of the range from which Linux chooses: one of those could go to another test.
async fn free_address() -> String {
    for port in 20_000 + std::process::id() % 10_000.. {
        let address = format!("127.0.0.1:{port}");
        if TcpListener::bind(&address).await.is_ok() {
            return address;
        }
    }
    unreachable!()
}

/// The connection breaks after the call was sent: nobody knows what became of it.
#[tokio::test]
async fn what_was_lost_on_its_way_is_not_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = ClientBuilder::new(listener.local_addr().unwrap().to_string()).connect().unwrap();
    let lost = tokio::spawn(async move { lose(&listener).await });
    let request = CreateAgentRequest { agent_id: "ada".into(), ..Default::default() };

    let error = client.create_agent(request).await.unwrap_err();

    assert_eq!(error.code(), Code::Unavailable);
    lost.await.unwrap();
}

/// Begin as HTTP/2 does, with empty settings, and break off when the agent's id is there.
async fn lose(listener: &TcpListener) {
    let (mut connection, _) = listener.accept().await.unwrap();
    connection.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    let mut got = Vec::new();
    while !got.windows(5).any(|part| part == b"\x0a\x03ada") {
        connection.read_buf(&mut got).await.unwrap();
    }
}

#[tokio::test]
async fn overload_is_waited_out_if_the_server_names_a_time() {
    let delay = Duration::from_millis(60);
    let server = FakeServer::start(move |_, earlier| match earlier {
        0 => Answer::Error(Status::with_error_details(
            Code::ResourceExhausted,
            "too many calls",
            ErrorDetails::with_retry_info(Some(delay)),
        )),
        _ => message(GetMemoryResponse::default()),
    })
    .await;
    let start = Instant::now();
    client(&server).get_memory(get()).await.unwrap();
    assert!(start.elapsed() >= delay);

    let server = FakeServer::start(|_, _| Answer::Error(Status::resource_exhausted(""))).await;
    client(&server).get_memory(get()).await.unwrap_err();
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn no_pause_goes_beyond_the_deadline() {
    let server = FakeServer::start(|_, _| {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(60)));
        Answer::Error(Status::with_error_details(Code::Unavailable, "away", details))
    })
    .await;

    let error = client(&server).get_memory(get()).await.unwrap_err();

    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(error.retry_delay(), Some(Duration::from_secs(60)));
    assert_eq!(error.to_string(), "Unavailable: away (retry after 60s)");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let client = ClientBuilder::new("127.0.0.1:1").connect().unwrap().without_retries();
    let error = client.get_memory(get()).await.unwrap_err();
    assert_eq!((error.code(), error.reason()), (Code::Unavailable, None));
}

/// Calls race with the end of connections. None fails, and what must not happen twice does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_ends_of_age_loses_and_repeats_no_call() {
    let server =
        FakeServer::start_aging(Duration::from_millis(5), |_, _| message(CreateAgentResponse::default()))
            .await;
    let client = client(&server);
    let callers = (0..8).map(|caller| {
        let client = client.clone();
        tokio::spawn(async move {
            for call in 0..50 {
                let agent_id = format!("{caller}-{call}");
                let request = CreateAgentRequest { agent_id, ..Default::default() };
                client.create_agent(request).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }

    let calls = server.calls();
    let ids: HashSet<_> =
        calls.iter().map(|call| call.messages::<CreateAgentRequest>().remove(0).agent_id).collect();
    assert_eq!((calls.len(), ids.len()), (400, 400));
}

#[tokio::test]
async fn one_call_at_a_time_has_one_connection_and_calls_at_once_have_up_to_four() {
    let server = FakeServer::start(|call, _| match call.method.as_str() {
        "MemoryService/GetMemory" => message(GetMemoryResponse::default()),
        _ => Answer::Silence,
    })
    .await;
    let client = client(&server).with_timeout(Duration::from_secs(2)).unwrap();

    client.get_memory(get()).await.unwrap();
    client.get_memory(get()).await.unwrap();
    assert_eq!(server.connections(), 1);

    let calls: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.save_memory(save()).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
    }
    assert_eq!(server.connections(), 4);
}

#[tokio::test]
async fn an_import_streams_its_passages() {
    let response = ImportPassagesResponse { stored_count: 2, ..Default::default() };
    let server = FakeServer::start(move |_, _| message(response)).await;
    let passages = ["Graz by bus.", "Never again."].map(|content| ImportPassagesRequest {
        passage: Some(StorePassageRequest { content: content.into(), ..Default::default() }),
        ..Default::default()
    });

    let imported = client(&server).import_passages(tokio_stream::iter(passages.clone())).await.unwrap();

    assert_eq!(imported.stored_count, 2);
    assert_eq!(server.calls()[0].messages::<ImportPassagesRequest>(), passages);
}

#[tokio::test]
async fn an_import_that_fails_says_how_far_it_came_and_is_not_made_again() {
    let progress = ImportProgress { stored_count: 64, existing_count: 1 };
    let server =
        FakeServer::start(move |_, _| Answer::Error(status(Code::Unavailable, "UNAVAILABLE", &progress)))
            .await;

    let error = client(&server).import_passages(tokio_stream::empty()).await.unwrap_err();

    assert_eq!(error.import_progress(), Some(progress));
    assert_eq!(error.to_string(), "UNAVAILABLE: refused (64 passages stored, 1 already there)");
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn a_budget_that_refuses_says_what_takes_the_room() {
    let entry = BudgetEntry { note_id: "1".into(), preview: "Ada travels by".into(), ..Default::default() };
    let usage = Usage { used_chars: 2190, limit_chars: 2200, ..Default::default() };
    let exceeded =
        BudgetExceeded { usage: Some(usage), would_be_chars: 2303, over_by_chars: 103, entries: vec![entry] };
    let sent = exceeded.clone();
    let server = FakeServer::start(move |_, _| {
        Answer::Error(status(Code::FailedPrecondition, "BUDGET_EXCEEDED", &sent))
    })
    .await;

    let error = client(&server).add_note(AddNoteRequest::default()).await.unwrap_err();

    assert_eq!(error.code(), Code::FailedPrecondition);
    assert_eq!(error.reason(), Some(ErrorReason::BudgetExceeded));
    assert_eq!(error.message(), "refused");
    assert_eq!(error.budget_exceeded(), Some(exceeded));
    assert_eq!(error.details().len(), 2);
    assert_eq!(error.to_string(), "BUDGET_EXCEEDED: refused (over by 103 characters: 2303 of 2200)");
    assert!(!format!("{error:?}").contains("Ada"));
}

#[tokio::test]
async fn a_conversation_that_has_seen_more_says_how_far_it_is_tainted() {
    let tainted = ConversationTainted { taint: Classification::Confidential.into(), ..Default::default() };
    let server = FakeServer::start(move |_, _| {
        Answer::Error(status(Code::FailedPrecondition, "CONVERSATION_TAINTED", &tainted))
    })
    .await;

    let error = client(&server).open_session(OpenSessionRequest::default()).await.unwrap_err();

    assert_eq!(error.reason(), Some(ErrorReason::ConversationTainted));
    assert_eq!(error.conversation_tainted().unwrap().taint(), Classification::Confidential);
    assert_eq!(error.budget_exceeded(), None);
}

#[tokio::test]
async fn a_full_quota_is_named() {
    let server = FakeServer::start(|_, _| {
        let mut details = ErrorDetails::new();
        details.set_error_info("QUOTA_EXCEEDED", "muniment.v1", [("quota".into(), "items".into())]);
        Answer::Error(Status::with_error_details(Code::ResourceExhausted, "full", details))
    })
    .await;

    let error = client(&server).save_memory(save()).await.unwrap_err();

    assert_eq!(error.to_string(), "QUOTA_EXCEEDED: full (quota: items)");
}

#[tokio::test]
async fn a_broken_rule_names_its_field_and_a_fault_its_incident() {
    let server = FakeServer::start(|_, earlier| {
        let mut details = ErrorDetails::new();
        let reason = if earlier == 0 { "FIELD_INVALID" } else { "INTERNAL" };
        details.set_error_info(reason, "muniment.v1", [("incident".into(), "4711".into())]);
        details.add_bad_request_violation("key", "must not be empty");
        Answer::Error(Status::with_error_details(Code::InvalidArgument, "invalid", details))
    })
    .await;

    let error = client(&server).get_memory(get()).await.unwrap_err();

    assert_eq!(error.reason(), Some(ErrorReason::FieldInvalid));
    assert_eq!(error.field_violations()[0].field, "key");
    assert_eq!(error.incident().as_deref(), Some("4711"));
    assert_eq!(error.to_string(), "FIELD_INVALID: invalid (key: must not be empty) (request 4711)");
}

/// A status with a request id.
fn named(mut status: Status, id: &str) -> Status {
    status.metadata_mut().insert("request-id", id.parse().unwrap());
    status
}

#[tokio::test]
async fn an_error_has_the_request_id_of_the_last_attempt_and_prints_it() {
    let server = FakeServer::start(|_, earlier| {
        Answer::Error(match earlier {
            0 => named(Status::unavailable("the database is away"), "r1"),
            _ => named(Status::not_found("no such memory"), "r2"),
        })
    })
    .await;

    let error = client(&server).get_memory(get()).await.unwrap_err();

    assert_eq!(error.request_id().as_deref(), Some("r2"));
    assert_eq!(error.to_string(), "NotFound: no such memory (request r2)");
    assert!(format!("{error:?}").contains("r2"));
}

#[tokio::test]
async fn an_import_that_fails_has_a_request_id() {
    let server = FakeServer::start(|_, _| Answer::Error(named(Status::aborted("raised"), "r1"))).await;

    let error = client(&server).import_passages(tokio_stream::empty()).await.unwrap_err();

    assert_eq!(error.request_id().as_deref(), Some("r1"));
}

#[tokio::test]
async fn without_an_answer_there_is_no_request_id() {
    let nowhere = ClientBuilder::new("127.0.0.1:1").credential("ms_secret").connect().unwrap();

    let error = nowhere.without_retries().get_memory(get()).await.unwrap_err();

    assert_eq!((error.code(), error.request_id()), (Code::Unavailable, None));
    assert!(!error.to_string().contains("(request"));
}

#[tokio::test]
async fn a_fault_is_known_by_one_id_which_version_0_1_0_sends_as_the_incident_alone() {
    let server = FakeServer::start(|_, earlier| {
        let mut details = ErrorDetails::new();
        details.set_error_info("INTERNAL", "muniment.v1", [("incident".into(), "r1".into())]);
        let fault = Status::with_error_details(Code::Internal, "a fault", details);
        Answer::Error(if earlier == 0 { named(fault, "r1") } else { fault })
    })
    .await;

    for _ in 0..2 {
        let error = client(&server).get_memory(get()).await.unwrap_err();
        assert_eq!(error.request_id(), error.incident());
        assert_eq!(error.to_string(), "INTERNAL: a fault (request r1)");
    }
}

#[tokio::test]
async fn a_reason_of_another_domain_is_none_and_a_newer_one_is_a_name() {
    let server = FakeServer::start(|_, earlier| {
        let (reason, domain) = [("ETAG_STALE", "example"), ("YET_UNKNOWN", "muniment.v1")][earlier];
        let mut details = ErrorDetails::new();
        details.set_error_info(reason, domain, []);
        Answer::Error(Status::with_error_details(Code::Aborted, "", details))
    })
    .await;

    for name in [None, Some("YET_UNKNOWN")] {
        let error = client(&server).get_memory(get()).await.unwrap_err();
        assert_eq!((error.code(), error.reason()), (Code::Aborted, None));
        assert_eq!(error.reason_name().as_deref(), name);
    }
}

#[tokio::test]
async fn nothing_prints_a_credential_or_what_is_stored() {
    let server = FakeServer::start(|_, _| Answer::Silence).await;
    let opened = OpenSessionResponse { token: "ms_secret".into(), ..Default::default() };
    let memory = Memory {
        content: "secret".into(),
        classification: Classification::Restricted.into(),
        ..Default::default()
    };

    let printed = format!("{:?} {opened:?} {memory:?}", client(&server));

    assert!(!printed.contains("secret"), "{printed}");
    assert!(printed.contains("classification: Restricted"), "{printed}");
}
