//! What journals in databases share. For implementations of [`Journal`](crate::Journal); a program
//! that uses a journal needs none of it.

mod head;
mod progress;
mod queues;
mod rows;
mod through;
mod waiting;

pub use self::{
    head::{Head, begins_run},
    progress::Progress,
    queues::{Request, TenantQueues},
    rows::{Found, Row, nearest_id},
    through::dropped_through,
    waiting::Waiting,
};
