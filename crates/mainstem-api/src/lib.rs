#![doc = include_str!("../README.md")]
//!
//! * The traits [`Host`], [`AnySession`] and [`AnyRun`]: one interface for local and remote
//!   sessions. `mainstem-session` implements it for sessions of this process and for recorded ones,
//!   `mainstem-client` for those of a server.
//! * The requests and responses as types: [`NewRun`], [`RunView`], [`SessionView`], [`EventQuery`]
//!   and others.
//! * [`Problem`]: why a request was refused, with a stable [`Code`].
//! * [`Endpoint`]: the paths of a server, from which `openapi` makes the OpenAPI document (feature
//!   `openapi`).
//! * [`StreamForm`]: the forms in which a server streams events.
//!
//! The crate knows no runtime, no HTTP library and no agent.

mod agent;
mod endpoint;
mod error;
mod host;
mod job;
mod link;
mod live;
#[cfg(feature = "openapi")]
mod openapi;
mod operation;
mod page;
mod problem;
mod run;
mod session;
mod stream_form;
mod task;

pub use agent::{
    AgentView, Agents, Approval, Approved, CancelledAgent, Login, ModelView, NewMessage, NewToolResult,
};
pub use endpoint::{COOKIE, Endpoint, TENANT_HEADER};
pub use error::Error;
pub use host::{AnyRun, AnySession, Begun, Events, Host};
pub use job::{JobQuery, JobRunView, JobState, JobView, NewJob};
pub use link::{LinkView, NewLink, NewLinkView};
pub use live::{LiveFrame, LiveQuery, ServerView, Use};
#[cfg(feature = "openapi")]
pub use openapi::openapi;
pub use operation::{Method, Operation};
pub use page::{MAX_LIMIT, Page, RunQuery, SessionQuery};
pub use problem::{Code, Problem};
pub use run::{
    CancelCode, CancelQuery, Input, MAX_DATA, NewRun, OnDisconnect, RunOptions, RunState, RunView,
};
pub use session::{Detail, EventQuery, FleetQuery, Format, Items, SessionState, SessionView, Transcript};
pub use stream_form::StreamForm;
pub use task::{TaskQuery, WaitQuery};
