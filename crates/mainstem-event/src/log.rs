//! How events come about: sinks emit them, the session log numbers them, cursors read them.

mod clock;
mod cursor;
mod mode;
mod record;
mod session_log;
mod sink;
mod sync;

pub use self::{
    clock::{Clock, Ids, RandomIds, SystemClock},
    cursor::Cursor,
    record::{Page, Position, Record},
    session_log::{LogOptions, SessionLog},
    sink::{EventSink, Settle},
};
