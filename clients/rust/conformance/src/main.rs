//! Plays the scenarios of `tests/clients/conformance` through this client: `conformance FILE`.
//!
//! Its README says what comes in, what goes out, and which variables of the environment name the server.

use std::{cell::RefCell, collections::HashMap, env, error::Error, fs, io, process::ExitCode};

use muniment::{Certificate, Client, ClientBuilder, ClientTlsConfig, Code, Conversation};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::{Map, Value, json};
use tokio_stream::StreamExt;

/// The contract with everything that it imports: prost has no JSON of its own.
const CONTRACT: &[u8] = include_bytes!("../../../../service/muniment_server/monitor/rules.binpb");

type Variables = HashMap<String, String>;
type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    match play(env::args().nth(1)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

async fn play(file: Option<String>) -> Result<()> {
    let file: Value = serde_json::from_slice(&fs::read(file.ok_or("usage: conformance FILE")?)?)?;
    let player = Player::from_env()?;
    for scenario in file["scenarios"].as_array().ok_or("no scenarios")? {
        let mut variables = Variables::new();
        player.conversations.borrow_mut().clear();
        for (index, step) in scenario["steps"].as_array().ok_or("no steps")?.iter().enumerate() {
            let mut line = match resolved(step, &variables) {
                Some(step) => player.play(&step).await?,
                None => json!({"status": "UNRESOLVED"}),
            };
            save(step, &line, &mut variables);
            line["scenario"] = scenario["name"].clone();
            line["step"] = index.into();
            println!("{line}");
        }
    }
    Ok(())
}

struct Player {
    contract: DescriptorPool,
    client: Client,
    host_key: String,
    /// The conversations that a scenario has opened, by the caller that its steps name.
    conversations: RefCell<HashMap<String, Conversation>>,
}

impl Player {
    fn from_env() -> Result<Self> {
        let mut builder = ClientBuilder::new(env::var("MUNIMENT_ADDRESS")?);
        if let Ok(ca) = env::var("MUNIMENT_TLS_CA") {
            let ca = Certificate::from_pem(fs::read(ca)?);
            builder = builder.tls(ClientTlsConfig::new().ca_certificate(ca));
        }
        Ok(Self {
            contract: DescriptorPool::decode(CONTRACT)?,
            client: builder.connect()?,
            host_key: env::var("MUNIMENT_HOST_KEY")?,
            conversations: RefCell::default(),
        })
    }

    async fn play(&self, step: &Value) -> Result<Value> {
        let call = step["call"].as_str().ok_or("no call")?;
        let (request, response) =
            self.types_of(call).ok_or_else(|| format!("{call}: not in the contract"))?;
        let messages = match step.get("requests") {
            Some(requests) => requests.as_array().ok_or("requests are a list")?.clone(),
            None => vec![step.get("request").cloned().unwrap_or_else(|| json!({}))],
        };
        let messages = messages
            .into_iter()
            .map(|each| Ok(DynamicMessage::deserialize(request.clone(), each)?.encode_to_vec()))
            .collect::<Result<_>>()?;
        if step["wait"] == true {
            io::stdin().read_line(&mut String::new())?;
        }
        match send(self.client_of(step).await?, call, messages).await? {
            Ok(encoded) => {
                let response = DynamicMessage::decode(response, &*encoded)?;
                Ok(json!({"status": "OK", "response": serde_json::to_value(response)?}))
            }
            Err(error) => {
                let lost = error.code() == Code::Unavailable && error.source().is_some();
                if lost && step["may_be_lost"] != true { Err(error.into()) } else { self.failure(&error) }
            }
        }
    }

    fn types_of(&self, call: &str) -> Option<(MessageDescriptor, MessageDescriptor)> {
        let (service, method) = call.split_once('.')?;
        let service = self.contract.get_service_by_name(&format!("muniment.v1.{service}"))?;
        let method = service.methods().find(|each| each.name() == method)?;
        Some((method.input(), method.output()))
    }

    async fn client_of(&self, step: &Value) -> Result<Client> {
        let caller = step["as"].as_str().ok_or("as whom?")?;
        let names: Vec<_> = caller.split(' ').collect();
        let client = match names[..] {
            ["none"] => self.client.clone(),
            ["host"] => self.client.with_credential(&self.host_key)?,
            ["conversation", agent, id] => self.conversation(caller, agent, id).await?,
            _ => self.client.with_credential(caller)?,
        };
        Ok(match step["deadline_ms"].as_u64() {
            Some(milliseconds) => client.with_timeout(std::time::Duration::from_millis(milliseconds))?,
            None => client,
        })
    }

    /// Opened by the first step that names it.
    async fn conversation(&self, caller: &str, agent: &str, id: &str) -> Result<Client> {
        if let Some(opened) = self.conversations.borrow().get(caller) {
            return Ok((**opened).clone());
        }
        let opened = self.client.with_credential(&self.host_key)?.conversation(agent, id).await?;
        let client = (*opened).clone();
        self.conversations.borrow_mut().insert(caller.into(), opened);
        Ok(client)
    }

    fn failure(&self, error: &muniment::Error) -> Result<Value> {
        let any = self.contract.get_message_by_name("google.protobuf.Any").ok_or("no Any")?;
        let code = self.contract.get_enum_by_name("google.rpc.Code").ok_or("no Code")?;
        let mut details = Vec::new();
        for detail in error.details() {
            if detail.type_url != "type.googleapis.com/google.rpc.ErrorInfo" {
                let mut dynamic = DynamicMessage::new(any.clone());
                dynamic.transcode_from(&detail)?;
                details.push(serde_json::to_value(dynamic)?);
            }
        }
        Ok(json!({
            "status": code.get_value(error.code() as i32).ok_or("no such code")?.name(),
            "reason": error.reason_name().unwrap_or_default(),
            "message": error.message(),
            "details": details,
            "request_id": error.request_id().unwrap_or_default(),
        }))
    }
}

/// Make *call* with encoded messages. An error of the outer kind: this client has no such method.
async fn send(
    client: Client,
    call: &str,
    messages: Vec<Vec<u8>>,
) -> Result<std::result::Result<Vec<u8>, muniment::Error>> {
    macro_rules! unary {
        ($method:ident $response:ident) => {
            client.$method(decoded(&messages[0])).await.map(|response| response.encode_to_vec())
        };
    }
    macro_rules! stream {
        ($method:ident $response:ident) => {{
            let messages = tokio_stream::iter(messages).map(|each| decoded(&each));
            client.$method(messages).await.map(|response| response.encode_to_vec())
        }};
    }
    macro_rules! session {
        ($method:ident $response:ident) => {
            client.$method(decoded(&messages[0])).await.map(|opened| {
                let (token, session) = (opened.token().into(), Some(opened.opened().clone()));
                muniment::v1::$response { token, session }.encode_to_vec()
            })
        };
    }
    macro_rules! called {
        ($($kind:ident $name:literal $method:ident $response:ident;)*) => {
            match call {
                $($name => $kind!($method $response),)*
                _ => return Err(format!("{call}: not in this client").into()),
            }
        };
    }
    Ok(muniment::for_each_method!(called))
}

/// A message that was encoded from the same contract.
fn decoded<M: Message + Default>(encoded: &[u8]) -> M {
    M::decode(encoded).expect("the client is made from the contract")
}

/// The step with its variables replaced. None: one is unknown.
fn resolved(value: &Value, variables: &Variables) -> Option<Value> {
    Some(match value {
        Value::String(text) => Value::String(substituted(text, variables)?),
        Value::Array(each) => {
            Value::Array(each.iter().map(|each| resolved(each, variables)).collect::<Option<_>>()?)
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, each)| Some((name.clone(), resolved(each, variables)?)));
            Value::Object(fields.collect::<Option<Map<_, _>>>()?)
        }
        other => other.clone(),
    })
}

fn substituted(text: &str, variables: &Variables) -> Option<String> {
    let mut parts = text.split("${");
    let mut result = parts.next()?.to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}')?;
        result.push_str(variables.get(name)?);
        result.push_str(rest);
    }
    Some(result)
}

fn save(step: &Value, line: &Value, variables: &mut Variables) {
    for (name, path) in step["save"].as_object().into_iter().flatten() {
        let pointer = format!("/response/{}", path.as_str().unwrap_or_default().replace('.', "/"));
        match line.pointer(&pointer) {
            Some(Value::String(text)) => variables.insert(name.clone(), text.clone()),
            Some(other) => variables.insert(name.clone(), other.to_string()),
            None => None,
        };
    }
}
