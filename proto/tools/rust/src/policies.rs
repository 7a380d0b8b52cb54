//! What the policies of the contract say to clients.

use std::collections::HashSet;

use prost::{DecodeError, Message};

/// The requests, by full name, of the methods in an encoded `CodeGeneratorRequest` that may be repeated.
pub fn repeatable(encoded: &[u8]) -> Result<HashSet<String>, DecodeError> {
    let files = CodeGeneratorRequest::decode(encoded)?.proto_file;
    let services = files.into_iter().flat_map(|file| file.service);
    let methods = services.flat_map(|service| service.method);
    Ok(methods
        .filter(Method::may_be_repeated)
        .map(|method| method.input_type)
        .collect())
}

// The part of protobuf's own descriptors that is needed here. prost-types knows no options of others.

#[derive(Message)]
struct CodeGeneratorRequest {
    #[prost(message, repeated, tag = "15")]
    proto_file: Vec<File>,
}

#[derive(Message)]
struct File {
    #[prost(message, repeated, tag = "6")]
    service: Vec<Service>,
}

#[derive(Message)]
struct Service {
    #[prost(message, repeated, tag = "2")]
    method: Vec<Method>,
}

#[derive(Message)]
struct Method {
    #[prost(string, tag = "2")]
    input_type: String,
    #[prost(message, optional, tag = "4")]
    options: Option<Options>,
}

impl Method {
    fn may_be_repeated(&self) -> bool {
        let policy = self.options.as_ref().and_then(|each| each.policy.as_ref());
        policy.is_some_and(|policy| policy.may_be_repeated)
    }
}

#[derive(Message)]
struct Options {
    #[prost(message, optional, tag = "50200")]
    policy: Option<Policy>,
}

#[derive(Message)]
struct Policy {
    #[prost(bool, tag = "3")]
    may_be_repeated: bool,
}
