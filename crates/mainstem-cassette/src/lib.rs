#![doc = include_str!("../README.md")]
//!
//! A [`Cassette`] is a server on loopback between a provider and its vendor. It records the
//! vendor's responses to a file, or replays them. A dev-dependency: a failed replay panics.

mod builder;
mod canonical;
mod cassette;
mod difference;
mod error;
mod exchange;
mod format;
mod forward;
mod headers;
mod miss;
mod mode;
mod play;
mod recording;
mod router;
mod secrets;
mod serve;
mod tape;

pub use builder::CassetteBuilder;
pub use cassette::Cassette;
pub use error::CassetteError;
pub use mode::Mode;

#[cfg(test)]
mod tests;
