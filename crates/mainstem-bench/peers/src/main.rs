//! Reads the streams of `cargo xtask bench`'s scripted server with other crates that are built on
//! reqwest: the processor time of a delta, beside which the figures of Mainstem can be put.
//!
//! `OPENAI_API_KEY=key OPENAI_BASE_URL=URL/v1 mainstem-bench-peers CHILDREN DELTAS TIMES`, with the
//! URL that `mainstem-bench serve` prints.

use std::{env, future::Future, time::Duration};

use anyhow::{Context, Result, ensure};
use async_openai::{
    config::OpenAIConfig,
    types::chat::{ChatCompletionRequestUserMessageArgs, CreateChatCompletionRequestArgs},
};
use futures_util::StreamExt;
use genai::{
    ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::{ChatMessage, ChatRequest, ChatStreamEvent},
    resolver::{AuthData, Endpoint, ServiceTargetResolver},
};
use rig_core::{
    completion::CompletionRequest,
    providers::openai::OpenAI,
    streaming::{Item, StreamEvent},
};
use rustix::time::{ClockId, clock_gettime};
use tokio::{runtime, sync::mpsc, task::JoinSet};

/// As many deltas as a run's log buffers.
const CHANNEL: usize = 64;

type Sender = mpsc::Sender<String>;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let mut next = || arguments.next().context("usage: mainstem-bench-peers CHILDREN DELTAS TIMES");
    let (children, deltas, times) = (next()?.parse()?, next()?.parse()?, next()?.parse()?);
    let base = env::var("OPENAI_BASE_URL").context("OPENAI_BASE_URL is not set")?;
    let task = format!(r#"{{"say":{{"deltas":{deltas},"pace":0,"hangs":false}}}}"#);
    for (name, measure) in [
        ("async-openai", of_async_openai as fn(&Load) -> Result<f64>),
        ("genai", of_genai),
        ("rig-core", of_rig),
    ] {
        let load = Load { base: base.clone(), task: task.clone(), children, deltas };
        let mut taken = (0..times).map(|_| measure(&load)).collect::<Result<Vec<_>>>()?;
        taken.sort_by(f64::total_cmp);
        println!("{name}: {:.2} µs a delta", taken[taken.len() / 2]);
    }
    Ok(())
}

struct Load {
    /// The base URL of the API.
    base: String,
    task: String,
    children: u64,
    deltas: u64,
}

/// Measures children that each send the text of a stream; returns the microseconds of a delta.
fn measure<F: Future<Output = Result<()>> + Send + 'static>(
    load: &Load,
    child: impl Fn(Sender) -> F,
) -> Result<f64> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // The first connection is not counted.
        let (sender, _warm) = mpsc::channel(usize::try_from(load.deltas)?);
        child(sender).await?;
        let (sender, mut receiver) = mpsc::channel(CHANNEL);
        let before = cpu();
        let mut all = JoinSet::new();
        for _ in 0..load.children {
            all.spawn(child(sender.clone()));
        }
        drop(sender);
        let mut seen = 0;
        while let Some(text) = receiver.recv().await {
            seen += u64::from(!text.is_empty());
        }
        all.join_all().await.into_iter().collect::<Result<()>>()?;
        let expected = load.children * load.deltas;
        ensure!(seen == expected, "{seen} of {expected} deltas arrived");
        Ok((cpu() - before).as_secs_f64() * 1e6 / expected as f64)
    })
}

fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

fn of_async_openai(load: &Load) -> Result<f64> {
    let config = OpenAIConfig::new().with_api_base(&load.base).with_api_key("key");
    let client = async_openai::Client::with_config(config);
    let task = load.task.clone();
    measure(load, move |sender| {
        let (client, task) = (client.clone(), task.clone());
        async move {
            let message = ChatCompletionRequestUserMessageArgs::default().content(task).build()?;
            let request = CreateChatCompletionRequestArgs::default()
                .model("gpt-4o-mini")
                .messages([message.into()])
                .build()?;
            let mut stream = client.chat().create_stream(request).await?;
            while let Some(chunk) = stream.next().await {
                for choice in chunk?.choices {
                    if let Some(text) = choice.delta.content.filter(|text| !text.is_empty()) {
                        sender.send(text).await?;
                    }
                }
            }
            Ok(())
        }
    })
}

fn of_genai(load: &Load) -> Result<f64> {
    let base = format!("{}/", load.base);
    let target = move |target: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
        let endpoint = Endpoint::from_owned(base.clone());
        let model = ModelIden::new(AdapterKind::OpenAI, target.model.model_name);
        Ok(ServiceTarget { endpoint, auth: AuthData::from_single("key"), model })
    };
    let resolver = ServiceTargetResolver::from_resolver_fn(target);
    let client = genai::Client::builder().with_service_target_resolver(resolver).build()?;
    let task = load.task.clone();
    measure(load, move |sender| {
        let (client, task) = (client.clone(), task.clone());
        async move {
            let request = ChatRequest::new(vec![ChatMessage::user(task)]);
            let mut stream = client.exec_chat_stream("gpt-4o-mini", request, None).await?.stream;
            while let Some(event) = stream.next().await {
                if let ChatStreamEvent::Chunk(chunk) = event? {
                    sender.send(chunk.content).await?;
                }
            }
            Ok(())
        }
    })
}

fn of_rig(load: &Load) -> Result<f64> {
    let model = OpenAI::from_env()?.chat("gpt-4o-mini");
    let task = load.task.clone();
    measure(load, move |sender| {
        let (model, task) = (model.clone(), task.clone());
        async move {
            let mut stream = model.stream(CompletionRequest::new(task))?;
            while let Some(event) = stream.next().await {
                if let Item::Event(StreamEvent::Text { text, .. }) = event? {
                    sender.send(text).await?;
                }
            }
            Ok(())
        }
    })
}
