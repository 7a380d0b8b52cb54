#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod client;
mod connect;
mod conversation;
mod credential;
mod error;
mod mistakes;
mod pages;
mod pool;
mod renewals;
mod retries;
mod session;

pub use client::Client;
pub use connect::{ClientBuilder, InvalidSettings};
pub use conversation::Conversation;
pub use error::Error;
pub use pages::List;
pub use session::Session;
pub use tonic::{
    Code,
    transport::{Certificate, ClientTlsConfig, Identity},
};
pub use tonic_types::FieldViolation;

/// What is generated from the contract: messages, and the stubs that [`Client`] calls.
///
/// Content, keys, labels, tags, queries and tokens are left out of the `Debug` of messages.
#[allow(missing_docs, clippy::all, rustdoc::all)]
pub mod v1 {
    include!("gen/muniment.v1.rs");
}
