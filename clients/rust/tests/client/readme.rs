//! Examples of the README are those in `examples/`, and do what the README says.

use std::{path::PathBuf, process::Command};

use crate::{
    fake::{Answer, Call, FakeServer, message},
    pages::PagedList,
};
use muniment::v1::{
    Agent, Classification, CloseSessionResponse, CreateAgentResponse, Memory, MemoryResult,
    OpenSessionResponse, RaiseTaintResponse, SaveMemoryResponse, SearchMemoriesResponse, Session,
};
use prost_types::Timestamp;

const README: &str = include_str!("../../README.md");
const QUICKSTART: &str = include_str!("../../examples/quickstart.rs");
const CONVERSATION: &str = include_str!("../../examples/conversation.rs");
const TAINT: &str = include_str!("../../examples/taint.rs");

/// As a server would with an empty store.
fn answer(call: &Call, paged: &PagedList) -> Answer {
    match call.method.as_str() {
        "MemoryService/ListMemories" => paged.list(call),
        "SessionService/CloseSession" => message(CloseSessionResponse::default()),
        "AgentService/CreateAgent" => message(CreateAgentResponse { agent: Some(Agent::default()) }),
        "SessionService/OpenSession" => {
            message(OpenSessionResponse { token: "ms_1".into(), session: Some(session()) })
        }
        "SessionService/RaiseTaint" => {
            let taint = Classification::Confidential.into();
            message(RaiseTaintResponse { session: Some(Session { taint, ..session() }) })
        }
        "MemoryService/SaveMemory" => message(SaveMemoryResponse::default()),
        "MemoryService/SearchMemories" => {
            let memory = Memory { key: "tea".into(), classification: 1, ..Default::default() };
            let snippet = String::from("Assam, no sugar");
            let result = MemoryResult { memory: Some(memory), snippet, ..Default::default() };
            message(SearchMemoriesResponse { results: vec![result], ..Default::default() })
        }
        other => panic!("{other}"),
    }
}

fn session() -> Session {
    let expire_time = Some(Timestamp { seconds: 3600, nanos: 0 });
    Session {
        session_id: "s1".into(),
        conversation_id: "chat-42".into(),
        create_time: Some(Timestamp::default()),
        expire_time,
        ..Default::default()
    }
}

/// What an example prints, and the server that it spoke to.
async fn printed(name: &str) -> (String, FakeServer) {
    let paged = PagedList::new(&["errands", "tea"], 1);
    let server = FakeServer::start(move |call, _| answer(call, &paged)).await;
    let output = Command::new(example(name))
        .env("MUNIMENT_ADDRESS", &server.address)
        .env("MUNIMENT_HOST_KEY", "mk_1")
        .env("MUNIMENT_TOKEN", "ms_of_the_tour")
        .env_remove("MUNIMENT_TLS_CA")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_example_prints_what_the_readme_says() {
    let (printed, server) = printed("quickstart").await;

    let said = format!("```rust,no_run\n{QUICKSTART}```\n```text\n{printed}```\n");
    assert!(README.contains(&said), "{printed}");
    let methods: Vec<_> = server.calls().into_iter().map(|call| call.method).collect();
    let (save, raise) = ("MemoryService/SaveMemory", "SessionService/RaiseTaint");
    assert_eq!(methods[2..5], [save, raise, save]);
    let credentials: Vec<_> =
        server.calls().into_iter().map(|call| call.metadata["authorization"].clone()).collect();
    assert_eq!(
        (&credentials[0], credentials.last().unwrap()),
        (&"Bearer mk_1".parse().unwrap(), &"Bearer ms_1".parse().unwrap())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_a_raise_prints_what_the_readme_says() {
    assert_shown(TAINT, &printed("taint").await.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_a_conversation_prints_what_the_readme_says() {
    let (printed, server) = printed("conversation").await;

    assert_shown(CONVERSATION, &printed);
    assert_eq!(server.calls().last().unwrap().method, "SessionService/CloseSession");
}

/// The README has what is before the program, and what that prints.
fn assert_shown(example: &str, printed: &str) {
    let (shown, _) = example.split_once("\n\n#[tokio::main]").unwrap();
    let said = format!("```rust,no_run\n{shown}\n```\n```text\n{printed}```\n");
    assert!(README.contains(&said), "{printed}");
}

/// Where cargo has put an example: beside the folder of this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples").join(name)
}
