//! The methods of `Client`.

use std::{collections::HashSet, fmt::Write};

use prost_build::{Method, Service};
use prost_types::{FileDescriptorProto, method_options::IdempotencyLevel};

/// Writes the methods of services.
pub struct Methods {
    /// The messages, by full name, that have an etag.
    with_etag: HashSet<String>,
}

impl Methods {
    /// For the services and messages of *files*.
    pub fn of(files: &[FileDescriptorProto]) -> Self {
        let mut with_etag = HashSet::new();
        for file in files {
            for message in &file.message_type {
                if message.field.iter().any(|field| field.name() == "etag") {
                    with_etag.insert(format!(".{}.{}", file.package(), message.name()));
                }
            }
        }
        Self { with_etag }
    }

    /// Write the methods of *service*: of `Client`, and what its retries must know of each request.
    pub fn write(&self, service: &Service, code: &mut String) {
        let stub = format!(
            "{}_client::{}Client",
            snake_case(&service.name),
            service.name
        );
        writeln!(
            code,
            "/// [{}]({stub}), with the credential, deadline and retries of this client.",
            service.name
        )
        .unwrap();
        code.push_str("impl crate::Client {\n");
        for method in &service.methods {
            method.comments.append_with_indent(1, code);
            write_call(method, &stub, code);
        }
        code.push_str("}\n");
        for method in service.methods.iter().filter(|each| !each.client_streaming) {
            self.write_facts(method, code);
        }
    }

    fn write_facts(&self, method: &Method, code: &mut String) {
        let etag = if self.with_etag.contains(&method.input_proto_type) {
            "    fn etag(&self) -> &str {\n        &self.etag\n    }\n"
        } else {
            ""
        };
        write!(
            code,
            "impl crate::retries::UnaryRequest for {input} {{
    const METHOD: &'static str = \"{name}\";
    const IDEMPOTENCY: crate::retries::Idempotency = crate::retries::Idempotency::{level};
{etag}}}
",
            input = method.input_type,
            name = method.proto_name,
            level = match method.options.idempotency_level() {
                IdempotencyLevel::IdempotencyUnknown => "Unknown",
                IdempotencyLevel::NoSideEffects => "NoSideEffects",
                IdempotencyLevel::Idempotent => "Idempotent",
            },
        )
        .unwrap();
    }
}

fn write_call(method: &Method, stub: &str, code: &mut String) {
    let (argument, call) = if method.client_streaming {
        (
            format!(
                "requests: impl tonic::codegen::tokio_stream::Stream<Item = {}> + Send + 'static",
                method.input_type
            ),
            "stream(requests",
        )
    } else {
        (format!("request: {}", method.input_type), "unary(request")
    };
    write!(
        code,
        "    pub async fn {name}(&self, {argument}) -> Result<{output}, crate::Error> {{
        self.{call}, |channel, request| async move {{
            {stub}::new(channel).{name}(request).await
        }})
        .await
    }}
",
        name = method.name,
        output = method.output_type,
    )
    .unwrap();
}

/// `MemoryService` as `memory_service`, which is how tonic names the module of its stub.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}
