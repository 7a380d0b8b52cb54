//! The README's first example is `examples/quickstart.rs`, and does what the README says.

use std::{path::PathBuf, process::Command};

use crate::fake::{Answer, Call, FakeServer, message};
use muniment::v1::{
    Agent, CreateAgentResponse, Memory, MemoryResult, OpenSessionResponse, SaveMemoryResponse,
    SearchMemoriesResponse,
};

const README: &str = include_str!("../../README.md");
const QUICKSTART: &str = include_str!("../../examples/quickstart.rs");

/// As a server would with an empty store.
fn answer(call: &Call, _: usize) -> Answer {
    match call.method.as_str() {
        "AgentService/CreateAgent" => message(CreateAgentResponse { agent: Some(Agent::default()) }),
        "SessionService/OpenSession" => {
            message(OpenSessionResponse { token: "ms_1".into(), ..Default::default() })
        }
        "MemoryService/SaveMemory" => message(SaveMemoryResponse::default()),
        "MemoryService/SearchMemories" => {
            let memory = Memory { key: "tea".into(), classification: 2, ..Default::default() };
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
        .output()
        .unwrap();

    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        README.contains(&format!("```rust,no_run\n{QUICKSTART}```\n```text\n{printed}```\n")),
        "{printed}"
    );
    let credentials = server.calls().into_iter().map(|call| call.metadata["authorization"].clone());
    assert_eq!(credentials.last().unwrap(), "Bearer ms_1");
}

/// Where cargo has put an example: beside the folder of this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples").join(name)
}
