#![doc = include_str!("../README.md")]
//!
//! [`TaskFold`] is the state of a task, folded from the events of its run; [`TaskStream`] is the
//! stream of its updates. [`Request`]s for approvals are in the status of a task, and
//! [`answers`](answer::answers) reads what a client replies. What the protocol has no place for is
//! in the metadata of updates, under the [extension](extension::URI), if the client asked for it.

pub mod answer;
pub mod error;
pub mod extension;
pub mod input;
mod progress;
mod stream;
mod task;

/// The types of the official SDK.
pub use a2a as sdk;
pub use answer::Request;
pub use progress::Progress;
pub use stream::{Framing, TaskStream};
pub use task::TaskFold;

#[cfg(test)]
mod tests;
