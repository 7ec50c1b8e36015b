//! The bare client, with which everything is compared: reqwest, server-sent events, typed JSON, and
//! one channel for all children. It only reads.

use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use mainstem_sse::Decoder;
use reqwest::{Client, header::CONTENT_TYPE};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::codec::{Decoder as _, LinesCodec};

use crate::{
    client::{Observation, Seen},
    measure,
    script::{Load, Script},
    wire::Wire,
};

/// As many deltas as a run's log buffers.
pub(crate) const CHANNEL: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Bare {
    http: Client,
    url: String,
    wire: Wire,
}

impl Bare {
    pub(crate) fn new(root: &str, wire: Wire) -> Result<Self> {
        crate::install_crypto();
        // Decompression would cost, and plain bodies pass through it, too.
        let http = Client::builder().no_gzip().build()?;
        Ok(Self { http, url: format!("{root}{}", wire.path()), wire })
    }

    /// Runs all children of the load concurrently, each in a task of its own.
    pub(crate) async fn run(&self, load: &Load, seen: Seen<'_>) -> Result<()> {
        let task = Script::Say(load.say).to_task();
        let body = self.wire.body(&task).to_string();
        let (sender, mut receiver) = mpsc::channel(CHANNEL);
        let mut children = JoinSet::new();
        seen(Observation::Start(measure::now()));
        for _ in 0..load.children {
            children.spawn(self.clone().child(body.clone(), sender.clone()));
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
        let mut payloads = Payloads::of(self.wire);
        while let Some(mut bytes) = response.chunk().await? {
            while let Some(data) = payloads.next(&mut bytes)? {
                if data == "[DONE]" {
                    return Ok(());
                }
                if let Some(text) = self.wire.text(&data)?.filter(|text| !text.is_empty()) {
                    sender.send(text.into_owned()).await.context("the client was dropped")?;
                }
            }
        }
        Ok(())
    }
}

/// The decoder of a body.
enum Payloads {
    Events(Decoder),
    Lines(LinesCodec, BytesMut),
}

impl Payloads {
    fn of(wire: Wire) -> Self {
        if wire.is_lines() {
            Self::Lines(LinesCodec::new(), BytesMut::new())
        } else {
            Self::Events(Decoder::new())
        }
    }

    fn next(&mut self, bytes: &mut Bytes) -> Result<Option<String>> {
        match self {
            Self::Events(decoder) => Ok(decoder.decode(bytes)?.map(|event| event.data)),
            Self::Lines(codec, buffer) => {
                buffer.extend_from_slice(&std::mem::take(bytes));
                Ok(codec.decode(buffer)?)
            }
        }
    }
}
