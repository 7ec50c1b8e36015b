//! What a server says of its own accord, heard in the order in which it says it: rmcp hands each
//! notification to a task of its own.

use std::sync::Arc;

use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, ServerNotification},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// What is done with it. Never waits.
pub(crate) trait Listener: Send + Sync + 'static {
    fn hear(&self, notification: &ServerNotification);
}

/// A transport, and somebody who listens.
pub(crate) struct Tap<T> {
    inner: T,
    listener: Arc<dyn Listener>,
}

impl<T> Tap<T> {
    pub(crate) fn new(inner: T, listener: Arc<dyn Listener>) -> Self {
        Self { inner, listener }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        if let JsonRpcMessage::Notification(said) = &message {
            self.listener.hear(&said.notification);
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
