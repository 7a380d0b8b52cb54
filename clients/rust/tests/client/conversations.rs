//! Sessions that their host opens again.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use crate::{
    calls::status,
    fake::{Answer, Call, FakeServer, message},
};
use muniment::{
    Client, ClientBuilder, Code, Conversation,
    v1::{
        Classification, CloseSessionRequest, CloseSessionResponse, ConversationTainted, DeleteMemoryRequest,
        DeleteMemoryResponse, GetSessionResponse, ImportPassagesRequest, ImportPassagesResponse,
        Integrity, ListMemoriesRequest, ListMemoriesResponse, OpenSessionRequest, OpenSessionResponse,
        RaiseTaintRequest, RaiseTaintResponse, ResetSessionRequest, ResetSessionResponse, SaveMemoryRequest,
        SaveMemoryResponse, Session,
    },
};
use prost_types::{Duration, Timestamp};
use tonic::Status;

const HOUR: i64 = 3600;

/// A status of a reason without another detail.
fn refusal(code: Code, reason: &str) -> Answer {
    Answer::Error(status(code, reason, &prost_types::Duration::default()))
}

fn expired() -> Answer {
    refusal(Code::Unauthenticated, "CREDENTIAL_EXPIRED")
}

fn gone() -> Answer {
    refusal(Code::NotFound, "SESSION_NOT_FOUND")
}

fn tainted(taint: Classification) -> Answer {
    let detail = ConversationTainted { taint: taint.into(), ..Default::default() };
    Answer::Error(status(Code::FailedPrecondition, "CONVERSATION_TAINTED", &detail))
}

/// A session s1, s2 and so on, of so many seconds.
fn session(number: usize, seconds: i64) -> Session {
    Session {
        session_id: format!("s{number}"),
        agent_id: "ada".into(),
        conversation_id: "chat-42".into(),
        taint: Classification::Internal.into(),
        create_time: Some(Timestamp { seconds: 1000, nanos: 0 }),
        expire_time: Some(Timestamp { seconds: 1000 + seconds, nanos: 0 }),
        ..Default::default()
    }
}

/// A server whose sessions s1, s2 and so on have the tokens t1, t2 and so on.
struct Hosted {
    server: FakeServer,
    script: Arc<Mutex<HashMap<String, VecDeque<Answer>>>>,
}

impl Hosted {
    /// With the seconds of the first sessions. Later ones have an hour.
    async fn start(seconds: &[i64]) -> Self {
        let script: Arc<Mutex<HashMap<String, VecDeque<Answer>>>> = Arc::default();
        let (scripted, opened, seconds) = (script.clone(), Mutex::new(0), seconds.to_vec());
        let server = FakeServer::start(move |call, _| {
            let (_, method) = call.method.split_once('/').unwrap();
            let next = scripted.lock().unwrap().get_mut(method).and_then(VecDeque::pop_front);
            next.unwrap_or_else(|| answer(method, &opened, &seconds))
        })
        .await;
        Self { server, script }
    }

    fn host(&self) -> Client {
        ClientBuilder::new(&self.server.address).credential("h").connect().unwrap()
    }

    async fn conversation(&self) -> Conversation {
        self.host().conversation("ada", "chat-42").await.unwrap()
    }

    /// The next answers to a method.
    fn script(&self, method: &str, answers: impl IntoIterator<Item = Answer>) {
        self.script.lock().unwrap().entry(method.into()).or_default().extend(answers);
    }

    fn calls(&self, method: &str) -> Vec<Call> {
        self.server.calls().into_iter().filter(|call| call.method.ends_with(method)).collect()
    }

    /// Methods and credentials, without those before *from*.
    fn heard(&self, from: usize) -> Vec<String> {
        let heard = |call: Call| {
            let (_, method) = call.method.split_once('/').unwrap();
            let credential = call.metadata["authorization"].to_str().unwrap();
            format!("{method} {}", credential.trim_start_matches("Bearer "))
        };
        self.server.calls().into_iter().skip(from).map(heard).collect()
    }

    fn taints(&self) -> Vec<Classification> {
        let opened = self.calls("OpenSession").into_iter();
        opened.map(|call| call.messages::<OpenSessionRequest>()[0].taint()).collect()
    }

    fn closed(&self) -> Vec<String> {
        let closed = self.calls("CloseSession").into_iter();
        closed.map(|call| call.messages::<CloseSessionRequest>()[0].session_id.clone()).collect()
    }
}

fn answer(method: &str, opened: &Mutex<usize>, seconds: &[i64]) -> Answer {
    let mut number = opened.lock().unwrap();
    let next = || session(*number + 1, seconds.get(*number).copied().unwrap_or(HOUR));
    let token = format!("t{}", *number + 1);
    match method {
        "OpenSession" => {
            let session = Some(next());
            *number += 1;
            message(OpenSessionResponse { session, token })
        }
        "ResetSession" => {
            let session = Some(next());
            *number += 1;
            message(ResetSessionResponse { session, token })
        }
        "GetSession" => message(GetSessionResponse { session: Some(session(*number, HOUR)) }),
        "RaiseTaint" => {
            let taint = Classification::Confidential.into();
            message(RaiseTaintResponse { session: Some(Session { taint, ..session(*number, HOUR) }) })
        }
        "CloseSession" => message(CloseSessionResponse::default()),
        "SaveMemory" => message(SaveMemoryResponse::default()),
        "DeleteMemory" => message(DeleteMemoryResponse::default()),
        "ListMemories" => message(ListMemoriesResponse::default()),
        "ImportPassages" => message(ImportPassagesResponse::default()),
        other => panic!("{other}"),
    }
}

/// The reason why a call failed, and empty if it did not.
async fn save(client: &Client) -> String {
    let saved = client.save_memory(SaveMemoryRequest::default()).await;
    saved.err().map_or_else(String::new, |error| error.reason_name().unwrap())
}

async fn delete(client: &Client) {
    client.delete_memory(DeleteMemoryRequest::default()).await.unwrap();
}

#[tokio::test]
async fn a_session_with_little_time_is_opened_again_at_the_taint_of_its_conversation() {
    let hosted = Hosted::start(&[0]).await;
    let conversation = hosted.conversation().await;

    save(&conversation).await;
    save(&conversation).await;

    let calls = ["OpenSession h", "GetSession h", "OpenSession h", "SaveMemory t2", "SaveMemory t2"];
    assert_eq!(hosted.heard(0), calls);
    assert_eq!(hosted.taints(), [Classification::Unspecified, Classification::Internal]);
    assert_eq!((conversation.token(), conversation.session_id()), ("t2".into(), "s2".into()));
}

#[tokio::test]
async fn each_session_is_opened_with_the_time_that_was_asked_for() {
    let hosted = Hosted::start(&[0]).await;
    let request = OpenSessionRequest {
        agent_id: "ada".into(),
        conversation_id: "chat-42".into(),
        taint: Classification::Internal.into(),
        ttl: Some(Duration { seconds: 60, nanos: 0 }),
        ..Default::default()
    };

    save(&hosted.host().conversation_of(request.clone()).await.unwrap()).await;

    let opened = hosted.calls("OpenSession").into_iter().flat_map(|call| call.messages());
    assert_eq!(opened.collect::<Vec<OpenSessionRequest>>(), [request.clone(), request]);
}

#[tokio::test]
async fn a_session_that_cannot_be_renewed_in_time_goes_on_with_its_token() {
    let hosted = Hosted::start(&[0]).await;
    let conversation = hosted.conversation().await;
    hosted.script("OpenSession", [refusal(Code::PermissionDenied, "CEILING_EXCEEDED")]);

    save(&conversation).await;
    save(&conversation).await;

    let renewal = ["GetSession h", "OpenSession h"];
    assert_eq!(hosted.heard(1), [&renewal[..], &["SaveMemory t1"], &renewal, &["SaveMemory t2"]].concat());
}

#[tokio::test]
async fn a_call_whose_token_has_expired_is_made_again_once_whatever_it_is() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("DeleteMemory", [expired()]);
    delete(&conversation).await;
    assert_eq!(hosted.heard(1), ["DeleteMemory t1", "GetSession h", "OpenSession h", "DeleteMemory t2"]);

    hosted.script("SaveMemory", [expired(), expired()]);
    assert_eq!(save(&conversation).await, "CREDENTIAL_EXPIRED");
    assert_eq!(hosted.calls("SaveMemory").len(), 2);
}

#[tokio::test]
async fn calls_that_expire_together_wait_for_one_renewal() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("DeleteMemory", [expired(), expired(), expired()]);

    tokio::join!(delete(&conversation), delete(&conversation), delete(&conversation));

    assert_eq!(hosted.calls("OpenSession").len(), 2);
    assert_eq!(hosted.calls("DeleteMemory").len(), 6);
}

#[tokio::test]
async fn a_session_that_somebody_has_ended_is_not_opened_again() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    let closed = |close_time| {
        message(GetSessionResponse { session: Some(Session { close_time, ..session(1, HOUR) }) })
    };
    hosted.script("SaveMemory", [expired(), expired(), expired()]);

    hosted.script("GetSession", [gone(), closed(Some(Timestamp { seconds: 9000, nanos: 0 }))]);
    assert_eq!(save(&conversation).await, "CREDENTIAL_EXPIRED");
    assert_eq!(save(&conversation).await, "CREDENTIAL_EXPIRED");
    assert_eq!(hosted.calls("OpenSession").len(), 1);

    hosted.script("GetSession", [closed(session(1, HOUR).expire_time)]);
    assert_eq!(save(&conversation).await, "");
}

#[tokio::test]
async fn a_server_that_is_set_back_to_before_a_raise_is_noticed() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    conversation.raise(Classification::Confidential, "read the payroll").await.unwrap();
    let (taint, integrity) = (Classification::Confidential.into(), Integrity::Trusted.into());
    for found in [session(1, HOUR), Session { taint, integrity, ..session(1, HOUR) }] {
        hosted.script("GetSession", [message(GetSessionResponse { session: Some(found) })]);
        hosted.script("SaveMemory", [expired()]);

        assert_eq!(save(&conversation).await, "CREDENTIAL_EXPIRED");
        assert_eq!(hosted.calls("OpenSession").len(), 1);
    }
}

#[tokio::test]
async fn only_the_session_of_a_conversation_is_renewed_and_only_if_it_has_expired() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("SaveMemory", [refusal(Code::Unauthenticated, "CREDENTIAL_INVALID"), expired()]);

    assert_eq!(save(&conversation).await, "CREDENTIAL_INVALID");
    assert_eq!(save(&hosted.host().with_credential("t1").unwrap()).await, "CREDENTIAL_EXPIRED");
    assert_eq!(hosted.calls("OpenSession").len(), 1);
}

#[tokio::test]
async fn a_raise_between_two_steps_of_a_renewal_is_followed_at_most_four_times() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    let levels = [Classification::Public, Classification::Confidential, Classification::Restricted];
    hosted.script("SaveMemory", [expired(), expired(), expired()]);

    hosted.script("OpenSession", levels.map(tainted));
    hosted.script("OpenSession", [Classification::Restricted; 2].map(tainted));
    assert_eq!(save(&conversation).await, "CONVERSATION_TAINTED");
    hosted.script("OpenSession", [refusal(Code::FailedPrecondition, "CONVERSATION_TAINTED")]);
    assert_eq!(save(&conversation).await, "CONVERSATION_TAINTED");
    hosted.script("OpenSession", levels.map(tainted));
    assert_eq!(save(&conversation).await, "");

    let renewal = [&[Classification::Internal], &levels[..]].concat();
    let refused = [Classification::Restricted, Classification::Internal];
    assert_eq!(hosted.taints()[1..], [&renewal[..], &refused, &renewal].concat());
}

#[tokio::test]
async fn a_renewal_that_finds_no_server_is_tried_again_with_the_call_which_has_not_begun() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("DeleteMemory", [expired(), expired()]);
    hosted.script("OpenSession", [Answer::Error(Status::unavailable("away"))]);

    delete(&conversation).await;

    let renewal = ["DeleteMemory t1", "GetSession h", "OpenSession h"];
    assert_eq!(hosted.heard(1), [&renewal[..], &renewal, &["DeleteMemory t2"]].concat());
}

#[tokio::test]
async fn a_list_goes_on_over_a_renewal() {
    let hosted = Hosted::start(&[0]).await;
    let conversation = hosted.conversation().await;
    let foreign = || refusal(Code::InvalidArgument, "PAGE_TOKEN_INVALID");
    let page = ListMemoriesRequest { page_token: "of t1".into(), ..Default::default() };

    hosted.script("ListMemories", [foreign()]);
    conversation.list_memories(page.clone()).await.unwrap();
    assert_eq!(hosted.heard(3), ["ListMemories t2", "ListMemories t1"]);

    hosted.script("ListMemories", [foreign(), expired()]);
    let lost = conversation.list_memories(page).await.unwrap_err();
    assert_eq!(lost.reason_name().as_deref(), Some("PAGE_TOKEN_INVALID"));
}

#[tokio::test]
async fn a_stream_begins_with_a_fresh_token_and_is_never_made_again() {
    let hosted = Hosted::start(&[0]).await;
    let conversation = hosted.conversation().await;
    let passages = || tokio_stream::iter([ImportPassagesRequest::default()]);

    conversation.import_passages(passages()).await.unwrap();
    hosted.script("ImportPassages", [expired()]);
    conversation.import_passages(passages()).await.unwrap_err();

    assert_eq!(hosted.heard(3), ["ImportPassages t2", "ImportPassages t2"]);
}

#[tokio::test]
async fn a_call_waits_for_a_renewal_no_longer_than_its_deadline_and_the_next_renews() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("SaveMemory", [expired(), expired()]);
    hosted.script("GetSession", [Answer::Silence]);

    let hurried = conversation.with_timeout(std::time::Duration::from_millis(200)).unwrap();
    let late = hurried.save_memory(SaveMemoryRequest::default()).await.unwrap_err();

    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert_eq!(save(&conversation).await, "");
}

#[tokio::test]
async fn closing_closes_the_last_two_sessions_and_nothing_is_renewed_after_it() {
    let hosted = Hosted::start(&[0, 0]).await;
    let conversation = hosted.conversation().await;
    save(&conversation).await;
    save(&conversation).await;
    hosted.script("CloseSession", [gone(), refusal(Code::Internal, "INTERNAL")]);

    assert_eq!(conversation.close().await.unwrap_err().code(), Code::Internal);
    conversation.close().await.unwrap();
    conversation.close().await.unwrap();
    assert_eq!(hosted.closed(), ["s2", "s3", "s3"]);

    hosted.script("SaveMemory", [expired()]);
    assert_eq!(save(&conversation).await, "CREDENTIAL_EXPIRED");
    assert_eq!(hosted.calls("GetSession").len(), 2);
}

#[tokio::test]
async fn a_raise_is_of_the_session_that_is_open_now() {
    let hosted = Hosted::start(&[0]).await;
    let conversation = hosted.conversation().await;

    conversation.raise(Classification::Confidential, "read the payroll").await.unwrap();

    assert_eq!(hosted.heard(1), ["GetSession h", "OpenSession h", "RaiseTaint h"]);
    let raised = &hosted.calls("RaiseTaint")[0].messages::<RaiseTaintRequest>()[0];
    assert_eq!(raised.session_id, "s2");
    assert_eq!(conversation.session().taint(), Classification::Confidential);
}

#[tokio::test]
async fn a_reset_gives_another_conversation_and_the_old_one_is_over() {
    let hosted = Hosted::start(&[0]).await;
    let old = hosted.conversation().await;
    hosted.script("ResetSession", [refusal(Code::Internal, "INTERNAL")]);
    old.reset("it fails").await.unwrap_err();
    hosted.script("SaveMemory", [expired()]);
    assert_eq!(save(&old).await, "");

    let anew = old.reset("the context was wiped").await.unwrap();

    let reset = &hosted.calls("ResetSession")[1].messages::<ResetSessionRequest>()[0];
    assert_eq!(reset.session_id, "s3");
    hosted.script("SaveMemory", [expired(), expired()]);
    assert_eq!(save(&old).await, "CREDENTIAL_EXPIRED");
    assert_eq!(save(&anew).await, "");
    assert_eq!(anew.token(), "t5");
}

#[tokio::test]
async fn a_conversation_is_printed_without_its_token() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    let printed = format!("{conversation:?} {:?}", *conversation);
    assert!(printed.contains("s1") && !printed.contains("t1"), "{printed}");
}
