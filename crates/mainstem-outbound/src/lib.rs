#![doc = include_str!("../README.md")]

mod client;
mod reach;
mod retry_after;
mod secrets;

pub use client::{CONNECT_TIMEOUT, USER_AGENT, builder, client, client_within};
pub use reach::{Host, HostError, OutOfReach, Reach};
pub use retry_after::retry_after;
pub use secrets::{MissingVariable, Secrets};
