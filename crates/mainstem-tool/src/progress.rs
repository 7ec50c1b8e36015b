//! The future of [`ToolContext::progress`](crate::ToolContext::progress).

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use mainstem_event::Settle;

/// Waits while the reader is too far behind.
#[derive(Debug)]
#[must_use = "await it: progress that is not awaited has no bound"]
pub struct Progress<'a>(Settle<'a>);

impl<'a> Progress<'a> {
    pub(crate) fn new(settle: Settle<'a>) -> Self {
        Self(settle)
    }
}

impl Future for Progress<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}
