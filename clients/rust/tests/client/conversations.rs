//! Sessions that their host renews.

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
        Classification, CloseSessionResponse, DeleteMemoryRequest, DeleteMemoryResponse,
        ImportPassagesRequest, ImportPassagesResponse, OpenSessionRequest, OpenSessionResponse,
        RaiseTaintRequest, RaiseTaintResponse, RenewSessionRequest, RenewSessionResponse,
        ResetSessionRequest, ResetSessionResponse, SaveMemoryRequest, SaveMemoryResponse, Session,
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
        "RenewSession" => message(RenewSessionResponse { session: Some(session(*number, HOUR)) }),
        "RaiseTaint" => {
            let taint = Classification::Confidential.into();
            message(RaiseTaintResponse { session: Some(Session { taint, ..session(*number, HOUR) }) })
        }
        "CloseSession" => message(CloseSessionResponse::default()),
        "SaveMemory" => message(SaveMemoryResponse::default()),
        "DeleteMemory" => message(DeleteMemoryResponse::default()),
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
async fn a_session_with_little_time_is_renewed() {
    let hosted = Hosted::start(&[4, 0]).await;
    let young = hosted.conversation().await;
    save(&young).await;
    let conversation = hosted.conversation().await;

    save(&conversation).await;

    let calls = ["OpenSession h", "SaveMemory t1", "OpenSession h", "RenewSession h", "SaveMemory t2"];
    assert_eq!(hosted.heard(0), calls);
    assert_eq!((conversation.token(), conversation.session_id()), ("t2", "s2"));
    assert_eq!(conversation.session(), session(2, HOUR));
}

#[tokio::test]
async fn a_session_is_renewed_for_the_time_for_which_it_was_opened() {
    let hosted = Hosted::start(&[60]).await;
    let request = OpenSessionRequest { agent_id: "ada".into(), ..Default::default() };
    hosted.script("SaveMemory", [expired()]);

    let conversation = hosted.host().conversation_of(request).await.unwrap();
    save(&conversation).await;

    let renewed = &hosted.calls("RenewSession")[0].messages::<RenewSessionRequest>()[0];
    let ttl = Some(Duration { seconds: 60, nanos: 0 });
    assert_eq!(*renewed, RenewSessionRequest { session_id: "s1".into(), ttl });
}

#[tokio::test]
async fn a_session_that_cannot_be_renewed_in_time_goes_on_and_is_renewed_later() {
    let hosted = Hosted::start(&[1]).await;
    let conversation = hosted.conversation().await;
    sleep(750).await;
    hosted.script("RenewSession", [refusal(Code::Internal, "INTERNAL")]);

    save(&conversation).await;
    assert_eq!(hosted.heard(1), ["RenewSession h", "SaveMemory t1"]);
    sleep(60).await;
    save(&conversation).await;
    save(&conversation).await;

    assert_eq!(hosted.heard(3), ["RenewSession h", "SaveMemory t1", "SaveMemory t1"]);
}

async fn sleep(milliseconds: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
}

#[tokio::test]
async fn a_call_whose_token_has_expired_is_made_again_once_whatever_it_is() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("DeleteMemory", [expired()]);
    delete(&conversation).await;
    assert_eq!(hosted.heard(1), ["DeleteMemory t1", "RenewSession h", "DeleteMemory t1"]);

    hosted.script("SaveMemory", [expired(), expired()]);
    assert_eq!(save(&conversation).await, "CREDENTIAL_EXPIRED");
    assert_eq!(hosted.calls("SaveMemory").len(), 2);
}

#[tokio::test]
async fn a_session_that_somebody_has_ended_is_not_renewed() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("SaveMemory", [expired()]);
    hosted.script("RenewSession", [gone()]);

    assert_eq!(save(&conversation).await, "CREDENTIAL_EXPIRED");
    assert_eq!(hosted.heard(1), ["SaveMemory t1", "RenewSession h"]);
}

#[tokio::test]
async fn only_the_session_of_a_conversation_is_renewed_and_only_if_it_has_expired() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("SaveMemory", [refusal(Code::Unauthenticated, "CREDENTIAL_INVALID"), expired()]);

    assert_eq!(save(&conversation).await, "CREDENTIAL_INVALID");
    assert_eq!(save(&conversation.with_credential("t1").unwrap()).await, "CREDENTIAL_EXPIRED");
    assert_eq!(hosted.heard(1), ["SaveMemory t1", "SaveMemory t1"]);
}

#[tokio::test]
async fn a_renewal_that_finds_no_server_is_tried_again() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("DeleteMemory", [expired()]);
    hosted.script("RenewSession", [Answer::Error(Status::unavailable("away"))]);

    delete(&conversation).await;

    let calls = ["DeleteMemory t1", "RenewSession h", "RenewSession h", "DeleteMemory t1"];
    assert_eq!(hosted.heard(1), calls);
}

#[tokio::test]
async fn a_stream_begins_with_a_fresh_token_and_is_never_made_again() {
    let hosted = Hosted::start(&[0]).await;
    let conversation = hosted.conversation().await;

    hosted.script("ImportPassages", [expired()]);
    let passages = tokio_stream::iter([ImportPassagesRequest::default()]);
    conversation.import_passages(passages).await.unwrap_err();

    assert_eq!(hosted.heard(1), ["RenewSession h", "ImportPassages t1"]);
}

#[tokio::test]
async fn a_renewal_takes_no_longer_than_the_call() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("SaveMemory", [expired()]);
    hosted.script("RenewSession", [Answer::Silence]);

    let hurried = conversation.with_timeout(std::time::Duration::from_millis(200)).unwrap();
    let late = hurried.save_memory(SaveMemoryRequest::default()).await.unwrap_err();

    assert_eq!(late.code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn closing_closes_the_session_unless_it_has_ended() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    hosted.script("CloseSession", [refusal(Code::Internal, "INTERNAL"), gone()]);

    assert_eq!(conversation.close().await.unwrap_err().code(), Code::Internal);
    conversation.close().await.unwrap();
    conversation.close().await.unwrap();
    assert_eq!(hosted.heard(1), ["CloseSession h", "CloseSession h", "CloseSession h"]);
}

#[tokio::test]
async fn a_raise_is_of_a_session_that_is_open() {
    let hosted = Hosted::start(&[0]).await;
    let conversation = hosted.conversation().await;

    conversation.raise(Classification::Confidential, "read the payroll").await.unwrap();

    assert_eq!(hosted.heard(1), ["RenewSession h", "RaiseTaint h"]);
    let raised = &hosted.calls("RaiseTaint")[0].messages::<RaiseTaintRequest>()[0];
    assert_eq!(raised.session_id, "s1");
    assert_eq!(conversation.session().taint(), Classification::Confidential);
}

#[tokio::test]
async fn a_reset_gives_another_conversation() {
    let hosted = Hosted::start(&[]).await;
    let old = hosted.conversation().await;
    hosted.script("ResetSession", [refusal(Code::Internal, "INTERNAL")]);
    old.reset("it fails").await.unwrap_err();

    let anew = old.reset("the context was wiped").await.unwrap();

    let reset = &hosted.calls("ResetSession")[1].messages::<ResetSessionRequest>()[0];
    assert_eq!(reset.session_id, "s1");
    hosted.script("SaveMemory", [expired()]);
    assert_eq!(save(&anew).await, "");
    assert_eq!(hosted.heard(3), ["SaveMemory t2", "RenewSession h", "SaveMemory t2"]);
}

#[tokio::test]
async fn a_conversation_is_printed_without_its_token() {
    let hosted = Hosted::start(&[]).await;
    let conversation = hosted.conversation().await;
    let printed = format!("{conversation:?} {:?}", *conversation);
    assert!(printed.contains("s1") && !printed.contains("t1"), "{printed}");
}
