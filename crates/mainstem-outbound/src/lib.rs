#![doc = include_str!("../README.md")]

mod client;
mod secrets;

pub use client::client;
pub use secrets::Secrets;
