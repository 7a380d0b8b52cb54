use muniment::v1::{Classification, SaveMemoryRequest};
use muniment::{Client, Error};

async fn talk(host: &Client, agent_id: &str) -> Result<(), Error> {
    let conversation = host.conversation(agent_id, "chat-42").await?;
    let content = "What does she earn?".into();
    let line = SaveMemoryRequest { key: "last-line".into(), content, ..Default::default() };
    conversation.save_memory(line).await?;
    conversation.raise(Classification::Confidential, "read the payroll").await?;
    let session = conversation.session();
    println!("{} {:?}", session.conversation_id, session.taint());
    conversation.close().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use muniment::ClientBuilder;
    use muniment::v1::CreateAgentRequest;

    let host = ClientBuilder::from_env()?.connect()?;
    let agent = host.create_agent(CreateAgentRequest::default()).await?.agent.unwrap_or_default();
    talk(&host, &agent.agent_id).await?;
    Ok(())
}
