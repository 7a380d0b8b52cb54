//! The methods of `Client`.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write,
};

use prost_build::{Method, Service};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, field_descriptor_proto::Label,
};

/// Writes the methods of services.
pub struct Methods {
    /// The messages, by full name, that have an etag.
    with_etag: HashSet<String>,
    /// The requests that may be repeated.
    repeatable: HashSet<String>,
    /// The messages that hand out a session's token.
    with_token: HashSet<String>,
    /// Those that are pages of a list: the name and the type of what is listed.
    pages: HashMap<String, (String, String)>,
    /// The methods that have been written, with their packages.
    written: Vec<(String, String)>,
}

impl Methods {
    /// For the services and messages of *files*, of which the requests in *repeatable* may be repeated.
    pub fn of(files: &[FileDescriptorProto], repeatable: HashSet<String>) -> Self {
        let (mut with_etag, mut with_token) = (HashSet::new(), HashSet::new());
        let mut pages = HashMap::new();
        for file in files {
            for message in &file.message_type {
                let name = format!(".{}.{}", file.package(), message.name());
                let has = |field: &str| message.field.iter().any(|each| each.name() == field);
                if has("etag") {
                    with_etag.insert(name.clone());
                }
                if has("token") {
                    with_token.insert(name.clone());
                }
                if has("next_page_token") {
                    pages.insert(name, listed(message));
                }
            }
        }
        Self {
            with_etag,
            repeatable,
            with_token,
            pages,
            written: Vec::new(),
        }
    }

    /// Write the methods of *service*: of `Client`, and what its retries must know of each request.
    pub fn write(&mut self, service: &Service, code: &mut String) {
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
            self.write_call(method, &stub, code);
            if let Some((field, item)) = self.pages.get(&method.output_proto_type) {
                write_pager(method, field, item, code);
            }
        }
        code.push_str("}\n");
        for method in service.methods.iter().filter(|each| !each.client_streaming) {
            self.write_facts(method, code);
        }
        for method in &service.methods {
            let kind = self.kind(method);
            let line = format!(
                "{kind} \"{}.{}\" {} {};",
                service.name, method.proto_name, method.name, method.output_type
            );
            self.written.push((service.package.clone(), line));
        }
    }

    /// Write a macro that calls another one with every method of *package*: its kind, its name in the contract, its name
    /// here, and its response.
    pub fn write_list(&self, package: &str, code: &mut String) {
        let own = self.written.iter().filter(|(of, _)| of == package);
        let lines: Vec<&str> = own.map(|(_, line)| line.as_str()).collect();
        if lines.is_empty() {
            return;
        }
        write!(
            code,
            "#[doc(hidden)]
#[macro_export]
macro_rules! for_each_method {{
    ($callback:ident) => {{
        $callback! {{ {} }}
    }};
}}
",
            lines.join(" ")
        )
        .unwrap();
    }

    /// How it is called: with one message, with several, or for a session and its token.
    fn kind(&self, method: &Method) -> &'static str {
        if method.client_streaming {
            "stream"
        } else if self.with_token.contains(&method.output_proto_type) {
            "session"
        } else {
            "unary"
        }
    }

    fn write_call(&self, method: &Method, stub: &str, code: &mut String) {
        let (argument, call) = if method.client_streaming {
            let stream = "tonic::codegen::tokio_stream::Stream";
            let argument = format!(
                "requests: impl {stream}<Item = {}> + Send + 'static",
                method.input_type
            );
            (argument, "stream(requests")
        } else {
            (format!("request: {}", method.input_type), "unary(request")
        };
        let (output, returned) = if self.with_token.contains(&method.output_proto_type) {
            (
                "crate::Session",
                "self.opened(response.token, response.session)",
            )
        } else {
            (method.output_type.as_str(), "Ok(response)")
        };
        write!(
            code,
            "    pub async fn {name}(&self, {argument}) -> Result<{output}, crate::Error> {{
        let response = self.{call}, |channel, request| async move {{
            {stub}::new(channel).{name}(request).await
        }})
        .await?;
        {returned}
    }}
",
            name = method.name,
        )
        .unwrap();
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
    const MAY_BE_REPEATED: bool = {repeatable};
{etag}}}
",
            input = method.input_type,
            repeatable = self.repeatable.contains(&method.input_proto_type),
        )
        .unwrap();
    }
}

/// The name and the type of the one repeated field of a page.
fn listed(page: &DescriptorProto) -> (String, String) {
    let is_repeated = |field: &&FieldDescriptorProto| field.label() == Label::Repeated;
    let field = page
        .field
        .iter()
        .find(is_repeated)
        .expect("a page has items");
    let item = match field.type_name().rsplit('.').next() {
        Some(message) if !message.is_empty() => message,
        _ => "String",
    };
    (field.name().to_owned(), item.to_owned())
}

fn write_pager(method: &Method, field: &str, item: &str, code: &mut String) {
    write!(
        code,
        "    /// Whatever [`Client::{list}`](crate::Client::{list}) returns, from its first page to its last.
    pub fn {all}(&self, request: {input}) -> crate::List<{item}> {{
        let client = self.clone();
        crate::List::new(request.page_token.clone(), move |page_token| {{
            let (client, request) = (client.clone(), {input} {{ page_token, ..request.clone() }});
            async move {{
                let page = client.{list}(request).await?;
                Ok((page.{field}, page.next_page_token))
            }}
        }})
    }}
",
        list = method.name,
        all = method.name.replacen("list_", "all_", 1),
        input = method.input_type,
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
