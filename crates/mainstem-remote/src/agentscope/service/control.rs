//! Steers a reply: stops it, and sends the answers to what the service asks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use mainstem_event::{CancelReason, Decision};
use mainstem_message::{ConfirmId, ToolCallId};
use mainstem_tool::ToolOutput;
use serde_json::Value;
use tokio::time::sleep;

use super::{questions::Questions, server::Session, wire::Status};
use crate::{RemoteControl, RemoteError};

/// How often, and at which interval, a session is interrupted: a run that has not begun yet does
/// not notice the first time.
const INTERRUPTS: u32 = 8;
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(250);

/// How far a reply is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    has_begun: AtomicBool,
    is_over: AtomicBool,
}

impl Progress {
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::Release);
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// Steers a reply.
pub(super) struct Control {
    pub(super) session: Session,
    pub(super) questions: Arc<Questions>,
    pub(super) progress: Arc<Progress>,
}

#[async_trait]
impl RemoteControl for Control {
    async fn cancel(&self, _: &CancelReason) -> Result<(), RemoteError> {
        for _ in 0..INTERRUPTS {
            self.session.interrupt().await?;
            sleep(INTERRUPT_INTERVAL).await;
            let has_begun = self.progress.has_begun.load(Ordering::Acquire);
            let is_over = self.progress.is_over.load(Ordering::Acquire);
            if is_over || has_begun && self.session.status().await? == Status::Idle {
                break;
            }
        }
        Ok(())
    }

    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), RemoteError> {
        self.answer(self.questions.decide(id, decision)).await
    }

    async fn submit(&self, call: &ToolCallId, output: ToolOutput) -> Result<(), RemoteError> {
        self.answer(self.questions.executed(call, output)).await
    }
}

impl Control {
    /// Sends an answer. If it is lost on the way, what follows the reply sends it again.
    async fn answer(&self, event: Option<Value>) -> Result<(), RemoteError> {
        let Some(event) = event else { return Ok(()) };
        match self.session.chat(&event).await {
            Err(RemoteError::Unreachable { .. }) => {
                self.questions.lose(event);
                Ok(())
            }
            sent => sent,
        }
    }
}
