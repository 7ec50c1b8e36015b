//! Children of an agent: how one is started, waited for, sent to and stopped, and what the session
//! knows about each.

pub(crate) mod child_limit;
pub(crate) mod deadline;
pub(crate) mod idle;
pub(crate) mod inbox;
pub(crate) mod launch;
pub(crate) mod lineage;
mod lost;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod roster;
pub(crate) mod runner;
pub(crate) mod send;
pub(crate) mod start_order;
pub(crate) mod take_over;
pub(crate) mod unfinished;
pub(crate) mod unlisted;
pub(crate) mod versions;
pub(crate) mod wait;
pub(crate) mod wait_time;
