//! The bare client, with which everything is compared: reqwest, server-sent events, typed JSON, and
//! one channel for all children. It only reads.

use std::borrow::Cow;

use anyhow::{Context, Result};
use mainstem_sse::Decoder;
use reqwest::{Client, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    client::Observation,
    measure,
    script::{Load, Script},
};

/// As many deltas as a run's log buffers.
pub(crate) const CHANNEL: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Bare {
    http: Client,
    url: String,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

impl Bare {
    pub(crate) fn new(base_url: &str) -> Result<Self> {
        // Fails if one is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Decompression would cost, and plain bodies pass through it, too.
        let http = Client::builder().no_gzip().build()?;
        Ok(Self { http, url: format!("{base_url}/chat/completions") })
    }

    /// Runs all children of the load concurrently, each in a task of its own.
    pub(crate) async fn run(&self, load: &Load, seen: &mut dyn FnMut(Observation<'_>)) -> Result<()> {
        let task = Script::Say(load.say).to_task();
        let body = json!({
            "model": "scripted",
            "messages": [{ "role": "user", "content": task }],
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        let (sender, mut receiver) = mpsc::channel(CHANNEL);
        let mut children = JoinSet::new();
        seen(Observation::Start(measure::now()));
        for _ in 0..load.children {
            children.spawn(self.clone().child(body.to_string(), sender.clone()));
        }
        drop(sender);
        while let Some(text) = receiver.recv().await {
            seen(Observation::Delta(&text));
        }
        children.join_all().await.into_iter().collect()
    }

    async fn child(self, body: String, sender: mpsc::Sender<String>) -> Result<()> {
        let request = self.http.post(&self.url).header(CONTENT_TYPE, "application/json").body(body);
        let mut response = request.send().await?.error_for_status()?;
        let mut decoder = Decoder::new();
        while let Some(mut bytes) = response.chunk().await? {
            while let Some(event) = decoder.decode(&mut bytes)? {
                if event.data == "[DONE]" {
                    return Ok(());
                }
                let chunk: Chunk<'_> = serde_json::from_str(&event.data)?;
                let texts = chunk.choices.into_iter().filter_map(|choice| choice.delta.content);
                for text in texts.filter(|text| !text.is_empty()) {
                    sender.send(text.into_owned()).await.context("the client was dropped")?;
                }
            }
        }
        Ok(())
    }
}
