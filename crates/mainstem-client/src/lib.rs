//! A client of Mainstem's server: the sessions of [`Server`] behind the same interface as local ones.
//!
//! [`Server`] implements [`Host`](mainstem_api::Host), and [`RemoteSession`] implements [`AnySession`](mainstem_api::AnySession). An event
//! stream reconnects after a lost connection and continues behind the last event: each event arrives once and in order, and events that the
//! server no longer stores are reported as a `GAP`.
//!
//! ```no_run
//! use futures_util::StreamExt;
//! use mainstem_api::{AnySession, NewRun};
//! use mainstem_client::Server;
//!
//! # async fn example() -> Result<(), mainstem_api::Error> {
//! let server = Server::at("http://127.0.0.1:7878")?.with_token("secret");
//! let mut begun = server.open("session-1").run(NewRun::of("Compare Paris and Rome")).await?;
//! while let Some(event) = begun.events.next().await {
//!     println!("{}", event?);
//! }
//! println!("{}", begun.run.view().await?.reply.unwrap_or_default());
//! # Ok(())
//! # }
//! ```

mod connection;
mod events;
mod server;
mod session;

pub use server::Server;
pub use session::RemoteSession;

#[cfg(test)]
mod tests;
