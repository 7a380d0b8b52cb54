//! The client against a server in this process.

mod calls;
mod fake;
mod readme;
