#![doc = include_str!("../README.md")]
//!
//! [`Server`] implements [`Host`](mainstem_api::Host), and [`RemoteSession`] implements
//! [`AnySession`](mainstem_api::AnySession). An event stream reconnects after a lost connection and
//! continues behind the last event: each event arrives once and in order, and events that the
//! server no longer stores are reported as a `GAP`.

mod connection;
mod data;
mod events;
mod lines;
mod live;
mod server;
mod session;

pub use live::LiveFrames;
pub use server::Server;
pub use session::RemoteSession;

#[cfg(test)]
mod tests;
