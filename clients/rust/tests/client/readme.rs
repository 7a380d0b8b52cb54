//! The README's first example is `examples/quickstart.rs`, and does what the README says.

use std::{path::PathBuf, process::Command};

use crate::fake::{Answer, Call, FakeServer, message};
use muniment::v1::{
    Agent, CreateAgentResponse, Memory, MemoryResult, OpenSessionResponse, RaiseTaintResponse,
    SaveMemoryResponse, SearchMemoriesResponse, Session,
};

const README: &str = include_str!("../../README.md");
const QUICKSTART: &str = include_str!("../../examples/quickstart.rs");

/// As a server would with an empty store.
fn answer(call: &Call, _: usize) -> Answer {
    match call.method.as_str() {
        "AgentService/CreateAgent" => message(CreateAgentResponse { agent: Some(Agent::default()) }),
        "SessionService/OpenSession" => {
            let session = Session { session_id: "s1".into(), ..Default::default() };
            message(OpenSessionResponse { token: "ms_1".into(), session: Some(session) })
        }
        "SessionService/RaiseTaint" => message(RaiseTaintResponse::default()),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_example_prints_what_the_readme_says() {
    let server = FakeServer::start(answer).await;

    let output = Command::new(example("quickstart"))
        .env("MUNIMENT_ADDRESS", &server.address)
        .env("MUNIMENT_HOST_KEY", "mk_1")
        .env_remove("MUNIMENT_TOKEN")
        .env_remove("MUNIMENT_TLS_CA")
        .output()
        .unwrap();

    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        README.contains(&format!("```rust,no_run\n{QUICKSTART}```\n```text\n{printed}```\n")),
        "{printed}"
    );
    let methods: Vec<_> = server.calls().into_iter().map(|call| call.method).collect();
    let (save, raise) = ("MemoryService/SaveMemory", "SessionService/RaiseTaint");
    assert_eq!(methods[2..5], [save, raise, save]);
    let credentials = server.calls().into_iter().map(|call| call.metadata["authorization"].clone());
    assert_eq!(credentials.last().unwrap(), "Bearer ms_1");
}

/// Where cargo has put an example: beside the folder of this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples").join(name)
}
