//! Messages with fields that must not be printed.

use std::fmt::Write;

use prost::{DecodeError, Message};
use prost_types::field_descriptor_proto::{Label, Type};

/// A message with a field that the contract marks `debug_redact`.
pub struct RedactedMessage {
    pub package: String,
    message: DescriptorProto,
}

/// The messages of an encoded `CodeGeneratorRequest` that have something to hide.
pub fn messages_of(encoded: &[u8]) -> Result<Vec<RedactedMessage>, DecodeError> {
    let mut found = Vec::new();
    for file in CodeGeneratorRequest::decode(encoded)?.proto_file {
        for message in file.message_type {
            assert!(
                !message.nested_type.iter().any(DescriptorProto::is_redacted),
                "{}: a message in a message must not have a field to redact",
                message.name
            );
            assert!(
                !message
                    .field
                    .iter()
                    .any(|field| field.is_redacted() && field.is_in_oneof()),
                "{}: a field to redact must not be in a oneof, whose own Debug would show it",
                message.name
            );
            if message.is_redacted() {
                found.push(RedactedMessage {
                    package: file.package.clone(),
                    message,
                });
            }
        }
    }
    Ok(found)
}

impl RedactedMessage {
    /// The path by which prost knows it.
    pub fn path(&self) -> String {
        format!(".{}.{}", self.package, self.message.name)
    }

    /// The paths of its oneofs.
    pub fn oneofs(&self) -> impl Iterator<Item = String> {
        self.message
            .oneof_names()
            .map(|oneof| format!("{}.{oneof}", self.path()))
    }

    /// Write a `Debug` that shows the other fields.
    pub fn write_debug(&self, code: &mut String) {
        write!(
            code,
            "impl ::core::fmt::Debug for {name} {{
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{
        f.debug_struct(\"{name}\")",
            name = self.message.name
        )
        .unwrap();
        for field in self.message.field.iter().filter(|field| field.is_shown()) {
            let call = if field.is_enum() { "()" } else { "" };
            write!(
                code,
                ".field(\"{name}\", &self.{name}{call})",
                name = field.name
            )
            .unwrap();
        }
        for oneof in self.message.oneof_names() {
            write!(code, ".field(\"{oneof}\", &self.{oneof})").unwrap();
        }
        code.push_str(".finish_non_exhaustive()\n    }\n}\n");
    }
}

// The part of protobuf's own descriptors that is needed here. prost-types knows no `debug_redact` yet.

#[derive(Message)]
struct CodeGeneratorRequest {
    #[prost(message, repeated, tag = "15")]
    proto_file: Vec<FileDescriptorProto>,
}

#[derive(Message)]
struct FileDescriptorProto {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "4")]
    message_type: Vec<DescriptorProto>,
}

#[derive(Message)]
struct DescriptorProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    field: Vec<FieldDescriptorProto>,
    #[prost(message, repeated, tag = "3")]
    nested_type: Vec<DescriptorProto>,
    #[prost(message, repeated, tag = "8")]
    oneof_decl: Vec<OneofDescriptorProto>,
}

impl DescriptorProto {
    fn is_redacted(&self) -> bool {
        self.field.iter().any(FieldDescriptorProto::is_redacted)
    }

    fn oneof_names(&self) -> impl Iterator<Item = &str> {
        let is_real = |index: usize| {
            let mut fields = self.field.iter().filter(|field| field.is_in_oneof());
            fields.any(|field| field.oneof_index == i32::try_from(index).ok())
        };
        let oneofs = self.oneof_decl.iter().enumerate();
        oneofs
            .filter(move |(index, _)| is_real(*index))
            .map(|(_, oneof)| oneof.name.as_str())
    }
}

#[derive(Message)]
struct FieldDescriptorProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(enumeration = "Label", tag = "4")]
    label: i32,
    #[prost(enumeration = "Type", tag = "5")]
    r#type: i32,
    #[prost(int32, optional, tag = "9")]
    oneof_index: Option<i32>,
    #[prost(message, optional, tag = "8")]
    options: Option<FieldOptions>,
    #[prost(bool, tag = "17")]
    proto3_optional: bool,
}

impl FieldDescriptorProto {
    fn is_redacted(&self) -> bool {
        self.options
            .as_ref()
            .is_some_and(|options| options.debug_redact)
    }

    fn is_shown(&self) -> bool {
        !self.is_redacted() && !self.is_in_oneof()
    }

    /// Whether it is a number that has a getter for its name.
    fn is_enum(&self) -> bool {
        self.r#type() == Type::Enum && self.label() != Label::Repeated
    }

    fn is_in_oneof(&self) -> bool {
        self.oneof_index.is_some() && !self.proto3_optional
    }
}

#[derive(Message)]
struct OneofDescriptorProto {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Message)]
struct FieldOptions {
    #[prost(bool, tag = "16")]
    debug_redact: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_with(field: FieldDescriptorProto) -> Vec<RedactedMessage> {
        let message = DescriptorProto {
            name: "Message".into(),
            field: vec![field],
            ..Default::default()
        };
        let file = FileDescriptorProto {
            message_type: vec![message],
            ..Default::default()
        };
        let request = CodeGeneratorRequest {
            proto_file: vec![file],
        };
        messages_of(&request.encode_to_vec()).unwrap()
    }

    fn redacted() -> FieldDescriptorProto {
        FieldDescriptorProto {
            options: Some(FieldOptions { debug_redact: true }),
            ..Default::default()
        }
    }

    #[test]
    fn a_field_that_may_be_absent_may_be_redacted() {
        let optional = FieldDescriptorProto {
            oneof_index: Some(0),
            proto3_optional: true,
            ..redacted()
        };
        assert_eq!(found_with(optional).len(), 1);
    }

    #[test]
    #[should_panic = "must not be in a oneof"]
    fn a_field_of_a_oneof_may_not() {
        found_with(FieldDescriptorProto {
            oneof_index: Some(0),
            ..redacted()
        });
    }
}
