#![doc = include_str!("../README.md")]

mod client;
mod reach;
mod secrets;

pub use client::{builder, client, shared};
pub use reach::{Host, HostError, OutOfReach, Reach};
pub use secrets::{MissingVariable, Secrets};
