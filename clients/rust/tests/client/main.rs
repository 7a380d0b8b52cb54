//! The client against a server in this process.

mod calls;
mod conversations;
mod fake;
mod mistakes;
mod pages;
mod readme;
mod sessions;
