//! When the inner future is polled.

use std::{cell::Cell, future::poll_fn, rc::Rc, time::Duration};

use proptest::{collection::vec, prelude::*};
use tokio::{
    runtime::Builder,
    sync::{mpsc, oneshot},
    task::yield_now,
    time::sleep,
};
use tokio_test::{assert_pending, assert_ready_eq, task::spawn};

use super::*;

#[test]
fn asks_only_when_it_was_woken() {
    let (polls, (send, receive)) = (Rc::new(Cell::new(0)), oneshot::channel::<u8>());
    let (count, mut receive) = (polls.clone(), Box::pin(receive));
    let mut seldom = spawn(PollOnWake::new(poll_fn(move |cx| {
        count.set(count.get() + 1);
        receive.as_mut().poll(cx)
    })));
    for _ in 0..5 {
        assert_pending!(seldom.poll());
    }
    assert_eq!(polls.get(), 1);
    assert!(!seldom.is_woken());
    send.send(7).expect("it is awaited");
    assert!(seldom.is_woken());
    assert_ready_eq!(seldom.poll(), Ok(7));
    assert_eq!(polls.get(), 2);
}

#[test]
fn wakes_whoever_polled_it_last() {
    let (send, receive) = oneshot::channel::<()>();
    let mut seldom = Box::pin(PollOnWake::new(receive));
    let mut first = spawn(poll_fn(|cx| seldom.as_mut().poll(cx)));
    assert_pending!(first.poll());
    drop(first);
    let mut second = spawn(poll_fn(|cx| seldom.as_mut().poll(cx)));
    assert_pending!(second.poll());
    drop(send);
    assert!(second.is_woken());
    assert!(second.poll().is_ready());
}

#[test]
fn a_future_that_wakes_itself_is_polled_again() {
    let mut seldom = spawn(PollOnWake::new(async {
        for _ in 0..3 {
            yield_now().await;
        }
    }));
    let mut polls = 0;
    while seldom.poll().is_pending() {
        assert!(seldom.is_woken());
        polls += 1;
        assert!(polls < 10);
    }
}

proptest! {
    /// Whatever is polled in between, and from whichever thread it is woken, each wake reaches the
    /// future.
    #[test]
    fn no_wake_is_lost(pauses in vec(0..50u64, 1..20)) {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
        let sent = pauses.len();
        let heard = runtime.block_on(async move {
            let (send, mut receive) = mpsc::channel(1);
            let sender = async move {
                for pause in pauses {
                    sleep(Duration::from_micros(pause)).await;
                    send.send(()).await.expect("it is polled");
                }
            };
            let listener = PollOnWake::new(async move {
                let mut heard = 0;
                while receive.recv().await.is_some() {
                    heard += 1;
                }
                heard
            });
            let busy = async { loop { yield_now().await } };
            let (_, heard) = tokio::join!(sender, async { tokio::select! { heard = listener => heard, never = busy => never } });
            heard
        });
        prop_assert_eq!(heard, sent);
    }
}
