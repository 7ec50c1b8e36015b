//! The provider alone, in place of the bare client's streams, to separate its cost from the
//! engine's.

use std::sync::Arc;

use anyhow::{Context, Result};
use futures_util::StreamExt;
use mainstem::{
    message::Message,
    model::{Model, ModelDelta, ModelRequest},
};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    bare::CHANNEL,
    client::{Observation, Seen},
    measure,
    script::{Load, Script},
};

#[derive(Clone)]
pub(crate) struct Provider(Arc<dyn Model>);

impl Provider {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self(model)
    }

    /// Runs all children of the load concurrently, each in a task of its own.
    pub(crate) async fn run(&self, load: &Load, seen: Seen<'_>) -> Result<()> {
        let task = Message::user(Script::Say(load.say).to_task());
        let request = ModelRequest { messages: vec![Arc::new(task)], ..ModelRequest::default() };
        let (sender, mut receiver) = mpsc::channel(CHANNEL);
        let mut children = JoinSet::new();
        seen(Observation::Start(measure::now()));
        for _ in 0..load.children {
            children.spawn(self.clone().child(request.clone(), sender.clone()));
        }
        drop(sender);
        while let Some(text) = receiver.recv().await {
            seen(Observation::Delta(&text));
        }
        children.join_all().await.into_iter().collect()
    }

    async fn child(self, request: ModelRequest, sender: mpsc::Sender<String>) -> Result<()> {
        let mut deltas = self.0.stream(request);
        while let Some(delta) = deltas.next().await {
            if let ModelDelta::Text(text) = delta? {
                sender.send(text).await.context("the client was dropped")?;
            }
        }
        Ok(())
    }
}
