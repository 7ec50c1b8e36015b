//! Work ends when its call is cancelled.

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use mainstem_testing::context;

use super::*;
use crate::rig::block_on;

/// Runs until it is stopped, and reports how.
fn endless(stop: &Stop, started: &mpsc::Sender<()>, ended: &mpsc::Sender<()>) -> Result<(), WorkspaceError> {
    let _ = started.send(());
    let begin = Instant::now();
    while stop.check().is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it is never stopped");
        std::thread::yield_now();
    }
    let _ = ended.send(());
    stop.check()
}

#[test]
fn a_cancel_ends_the_work() {
    let cx = context("s").build();
    let ((started, starts), (ended, ends)) = (mpsc::channel(), mpsc::channel());
    let token = cx.cancellation().clone();
    let canceller = std::thread::spawn(move || {
        starts.recv().unwrap();
        token.cancel();
    });
    let result = block_on(blocking(&cx, move |stop| endless(stop, &started, &ended)));
    assert!(matches!(result, Err(WorkspaceError::Cancelled)));
    ends.try_recv().unwrap();
    canceller.join().unwrap();
}
