//! The session that a host opens.

use crate::fake::{Answer, Call, FakeServer, message};
use muniment::{
    Client, ClientBuilder, Code,
    v1::{
        Classification, CloseSessionResponse, OpenSessionRequest, OpenSessionResponse, ResetSessionRequest,
        ResetSessionResponse, SaveMemoryRequest, SaveMemoryResponse, Session,
    },
};

fn answer(call: &Call, _: usize) -> Answer {
    let session = |session_id: &str| {
        let taint = Classification::Internal.into();
        let ceiling = Classification::Restricted.into();
        Some(Session { session_id: session_id.into(), taint, ceiling, ..Default::default() })
    };
    match call.method.as_str() {
        "SessionService/OpenSession" => {
            message(OpenSessionResponse { token: "ms_secret".into(), session: session("s1") })
        }
        "SessionService/ResetSession" => {
            message(ResetSessionResponse { token: "ms_other".into(), session: session("s2") })
        }
        "SessionService/CloseSession" => message(CloseSessionResponse::default()),
        _ => message(SaveMemoryResponse::default()),
    }
}

fn host(server: &FakeServer) -> Client {
    ClientBuilder::new(&server.address).credential("mk_1").connect().unwrap()
}

#[tokio::test]
async fn an_opened_session_calls_with_its_token_until_it_is_closed() {
    let server = FakeServer::start(answer).await;

    let session = host(&server).open_session(OpenSessionRequest::default()).await.unwrap();
    session.save_memory(SaveMemoryRequest::default()).await.unwrap();
    session.close().await.unwrap();

    assert_eq!((session.session_id(), session.taint()), ("s1", Classification::Internal));
    assert_eq!(session.ceiling(), Classification::Restricted);
    let calls = server.calls().into_iter();
    let made: Vec<_> = calls
        .map(|call| (call.method, call.metadata["authorization"].to_str().unwrap().to_owned()))
        .collect();
    let expected = [
        ("SessionService/OpenSession", "Bearer mk_1"),
        ("MemoryService/SaveMemory", "Bearer ms_secret"),
        ("SessionService/CloseSession", "Bearer ms_secret"),
    ];
    assert_eq!(made, expected.map(|(method, credential)| (method.to_owned(), credential.to_owned())));
}

#[tokio::test]
async fn a_reset_gives_a_session_too() {
    let server = FakeServer::start(answer).await;

    let session = host(&server).reset_session(ResetSessionRequest::default()).await.unwrap();

    assert_eq!((session.session_id(), session.token()), ("s2", "ms_other"));
}

#[tokio::test]
async fn a_session_is_printed_without_its_token() {
    let server = FakeServer::start(answer).await;

    let session = host(&server).open_session(OpenSessionRequest::default()).await.unwrap();

    let printed = format!("{session:?} {session:#?}");
    assert!(printed.contains("s1") && !printed.contains("secret"), "{printed}");
}

#[tokio::test]
async fn a_token_that_no_header_carries_is_an_error_that_does_not_show_it() {
    let server = FakeServer::start(|_, _| {
        message(OpenSessionResponse { token: "ms secret".into(), ..Default::default() })
    })
    .await;

    let error = host(&server).open_session(OpenSessionRequest::default()).await.unwrap_err();

    assert_eq!(error.code(), Code::Internal);
    assert!(!format!("{error} {error:?}").contains("secret"));
}
