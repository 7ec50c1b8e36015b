//! Work ends when its future is dropped, and panics where it is awaited.

use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use super::*;
use crate::host::tests::context;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// Runs until it is stopped, and says so.
fn endless(stop: &Stop, started: &mpsc::Sender<()>) -> &'static str {
    let _ = started.send(());
    let begin = Instant::now();
    while !stop.is_set() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it is never stopped");
        std::thread::yield_now();
    }
    "stopped"
}

#[test]
fn its_output_is_the_works() {
    assert_eq!(block_on(context().blocking(|stop| (6 * 7, stop.is_set()))), (42, false));
}

#[test]
fn a_cancel_is_told_to_the_work_and_its_output_awaited() {
    let (cx, (started, starts)) = (context(), mpsc::channel());
    let token = cx.cancellation().clone();
    let canceller = std::thread::spawn(move || {
        starts.recv().unwrap();
        token.cancel();
    });
    assert_eq!(block_on(cx.blocking(move |stop| endless(stop, &started))), "stopped");
    canceller.join().unwrap();
}

#[test]
fn a_drop_is_told_to_the_work_alone() {
    let (cx, (started, starts), (ended, ends)) = (context(), mpsc::channel(), mpsc::channel());
    block_on(async {
        let work = cx.blocking(move |stop| ended.send(endless(stop, &started)));
        let mut work = tokio_test::task::spawn(work);
        tokio_test::assert_pending!(work.poll());
        starts.recv().unwrap();
        drop(work);
        assert_eq!(ends.recv_timeout(Duration::from_secs(20)).unwrap(), "stopped");
    });
    assert!(!cx.is_cancelled(), "only this work is ended");
}

#[test]
#[should_panic(expected = "a defect")]
fn a_panic_goes_on_where_it_is_awaited() {
    let cx = Arc::new(context());
    block_on(cx.blocking(|_| panic!("a defect")));
}
