//! Work ends when nobody wants it.

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use mainstem_testing::context;

use super::*;
use crate::rig::block_on;

/// Works until it is stopped, and says how that went.
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

#[test]
fn a_drop_ends_the_work() {
    let cx = context("s").build();
    let ((started, starts), (ended, ends)) = (mpsc::channel(), mpsc::channel());
    block_on(async {
        let mut work = Box::pin(blocking(&cx, move |stop| endless(stop, &started, &ended)));
        assert!(futures_util::poll!(&mut work).is_pending());
        starts.recv().unwrap();
        drop(work);
        ends.recv_timeout(Duration::from_secs(20)).unwrap();
    });
    assert!(!cx.is_cancelled(), "only this work is ended");
}

#[test]
fn a_panic_is_an_error() {
    let cx = context("s").build();
    let result = block_on(blocking::<()>(&cx, |_| panic!("a defect")));
    assert!(matches!(result, Err(WorkspaceError::Panicked)));
}
