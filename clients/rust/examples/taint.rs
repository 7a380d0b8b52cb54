use muniment::v1::{Classification, ErrorReason, ListMemoriesRequest, RaiseTaintRequest};
use muniment::{Client, Error, Session};

async fn talk(host: &Client, session: &Session) -> Result<(), Error> {
    let mut list = session.all_memories(ListMemoriesRequest { page_size: 1, ..Default::default() });
    while let Some(memory) = list.next().await {
        match memory {
            Ok(memory) => println!("read {}", memory.key),
            Err(error) if error.reason() == Some(ErrorReason::TaintChanged) => println!("the list ends here"),
            Err(error) => return Err(error),
        }
        // The host is about to show the model the payroll. It raises the taint first.
        let taint = Classification::Confidential.into();
        let (session_id, reason) = (session.session_id().into(), "read the payroll".into());
        host.raise_taint(RaiseTaintRequest { session_id, taint, reason, ..Default::default() }).await?;
    }
    let list = session.all_memories(ListMemoriesRequest::default()).restart_on_taint_change();
    println!("read all {}", list.into_vec().await?.len());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use muniment::ClientBuilder;
    use muniment::v1::{CreateAgentRequest, OpenSessionRequest, SaveMemoryRequest};

    let host = ClientBuilder::from_env()?.connect()?;
    let agent_id = host.create_agent(CreateAgentRequest::default()).await?.agent.unwrap_or_default().agent_id;
    let opening = OpenSessionRequest { agent_id, taint: Classification::Public.into(), ..Default::default() };
    let session = host.open_session(opening).await?;
    for key in ["errands", "tea"] {
        let memory = SaveMemoryRequest { key: key.into(), content: key.into(), ..Default::default() };
        session.save_memory(memory).await?;
    }
    talk(&host, &session).await?;
    session.close().await?;
    Ok(())
}
