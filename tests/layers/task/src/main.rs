//! A program over `mainstem-task` alone: work that outlives its caller, and an end to all of it.

use std::time::Duration;

use mainstem_task::{TaskFilter, TaskSet};
use tokio::sync::oneshot;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let tasks = TaskSet::in_memory();
    let (sender, receiver) = oneshot::channel();
    tasks.drive(async move {
        let _ = sender.send("done");
    });
    assert_eq!(receiver.await, Ok("done"));
    // Only work with a record is listed, and nothing was recorded.
    assert!(tasks.store().list(&TaskFilter::default()).await.expect("a store in memory").is_empty());

    // Work that would never end is dropped when the set is shut down.
    let (held, dropped) = oneshot::channel::<()>();
    tasks.drive(async move {
        let _held = held;
        std::future::pending::<()>().await;
    });
    tasks.shutdown(Duration::from_secs(1)).await;
    assert!(dropped.await.is_err());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_runs() {
        super::main();
    }
}
