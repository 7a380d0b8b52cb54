use muniment::ClientBuilder;
use muniment::v1::{
    Classification, CreateAgentRequest, OpenSessionRequest, RaiseTaintRequest, SaveMemoryRequest,
    SearchMemoriesRequest,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = ClientBuilder::from_env()?.connect()?;
    let ada = CreateAgentRequest { display_name: "Ada".into(), ..Default::default() };
    let agent_id = host.create_agent(ada).await?.agent.unwrap_or_default().agent_id;
    let opening = OpenSessionRequest { agent_id, taint: Classification::Public.into(), ..Default::default() };
    let session = host.open_session(opening).await?;

    let tea =
        SaveMemoryRequest { key: "tea".into(), content: "Assam, no sugar".into(), ..Default::default() };
    session.save_memory(tea).await?;
    let (session_id, taint) = (session.session_id().into(), Classification::Confidential.into());
    let reason = "read the payroll".into();
    host.raise_taint(RaiseTaintRequest { session_id, taint, reason, ..Default::default() }).await?;
    let salary =
        SaveMemoryRequest { key: "salary".into(), content: "52,000 a year".into(), ..Default::default() };
    session.save_memory(salary).await?; // saved at CONFIDENTIAL

    let query = SearchMemoriesRequest { query: "how does she like her tea?".into(), ..Default::default() };
    for result in session.search_memories(query).await?.results {
        let memory = result.memory.unwrap_or_default();
        println!("{} {:?} {}", memory.key, memory.classification(), result.snippet);
    }
    session.close().await?;
    Ok(())
}
