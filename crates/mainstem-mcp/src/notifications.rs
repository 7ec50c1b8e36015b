//! The notifications of a server, in the order in which it sends them: rmcp hands each to a task of
//! its own.

use std::sync::Arc;

use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, ServerNotification},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// Handles notifications. Never waits.
pub(crate) trait Listener: Send + Sync + 'static {
    fn notified(&self, notification: &ServerNotification);
}

/// A transport that shows notifications to a listener.
pub(crate) struct Observed<T> {
    inner: T,
    listener: Arc<dyn Listener>,
}

impl<T> Observed<T> {
    pub(crate) fn new(inner: T, listener: Arc<dyn Listener>) -> Self {
        Self { inner, listener }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Observed<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        if let JsonRpcMessage::Notification(message) = &message {
            self.listener.notified(&message.notification);
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
