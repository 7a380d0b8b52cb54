//! A protoc plugin for the Rust client: messages and stubs as prost and tonic make them, and besides
//!
//! * a method of `Client` for every method of the contract, and what its retries must know of each request;
//! * a `Debug` that leaves out what the contract marks `debug_redact`, which prost would print.

mod methods;
mod policies;
mod redacted;

use std::{
    collections::BTreeSet,
    io::{self, Read, Write, stdin, stdout},
};

use prost::Message;
use prost_build::{Config, Module, ServiceGenerator};
use prost_types::compiler::{
    CodeGeneratorRequest, CodeGeneratorResponse,
    code_generator_response::{Feature, File},
};

use crate::{methods::Methods, redacted::RedactedMessage};

/// The stubs of tonic, and what our client needs besides.
struct Services {
    stubs: Box<dyn ServiceGenerator>,
    methods: Methods,
    redacted: Vec<RedactedMessage>,
}

impl ServiceGenerator for Services {
    fn generate(&mut self, service: prost_build::Service, code: &mut String) {
        self.methods.write(&service, code);
        self.stubs.generate(service, code);
    }

    fn finalize(&mut self, code: &mut String) {
        self.stubs.finalize(code);
    }

    fn finalize_package(&mut self, package: &str, code: &mut String) {
        self.stubs.finalize_package(package, code);
        self.methods.write_list(package, code);
        for message in self.redacted.iter().filter(|each| each.package == package) {
            message.write_debug(code);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut encoded = Vec::new();
    stdin().read_to_end(&mut encoded)?;
    let request = CodeGeneratorRequest::decode(&*encoded)?;
    let methods = Methods::of(&request.proto_file, policies::repeatable(&encoded)?);
    let code = config(methods, redacted::messages_of(&encoded)?);
    let response = CodeGeneratorResponse {
        supported_features: Some(Feature::Proto3Optional as u64),
        file: files(request, code)?,
        ..Default::default()
    };
    stdout().write_all(&response.encode_to_vec())?;
    Ok(())
}

fn config(methods: Methods, redacted: Vec<RedactedMessage>) -> Config {
    let mut config = Config::new();
    config.enable_type_names();
    config.skip_debug(redacted.iter().map(RedactedMessage::path));
    // What is skipped for a message is skipped for its oneofs too, which have nothing to hide of their own.
    for oneof in redacted.iter().flat_map(RedactedMessage::oneofs) {
        config.type_attribute(oneof, "#[derive(Debug)]");
    }
    config.service_generator(Box::new(Services {
        stubs: tonic_prost_build::configure()
            .build_server(false)
            .service_generator(),
        methods,
        redacted,
    }));
    config
}

/// One file for each package that is asked for. Code is made for all: types that are only imported must be known.
fn files(request: CodeGeneratorRequest, mut config: Config) -> io::Result<Vec<File>> {
    let names = request.file_to_generate;
    let mut asked_for = BTreeSet::new();
    let mut protos = Vec::new();
    for proto in request.proto_file {
        let module = Module::from_protobuf_package_name(proto.package());
        if names.iter().any(|name| name == proto.name()) {
            asked_for.insert(module.clone());
        }
        protos.push((module, proto));
    }
    let mut code = config.generate(protos)?;
    let file = |module: Module| File {
        name: Some(module.to_file_name_or("_")),
        content: code.remove(&module),
        ..Default::default()
    };
    Ok(asked_for.into_iter().map(file).collect())
}
