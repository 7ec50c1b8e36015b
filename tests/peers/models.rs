//! Model servers that are not ours: a mock of every vendor's API from npm, and llama.cpp with a
//! real model.

use std::sync::Arc;

use futures_util::future::join_all;
use mainstem::{
    message::StopReason,
    model::{Model, ModelOptions},
    prelude::*,
    provider::{PROVIDERS, Provider, Setup, provider},
};
use mainstem_testing::{laws, render};
use serde_json::{Map, Value};

use crate::peer::{Peer, packages};

/// Returns a model of a vendor at that server.
fn model(vendor: &Provider, name: &str, root: &str) -> Arc<dyn Model> {
    let url = if vendor.base_url == "OPENAI_BASE_URL" { format!("{root}/v1") } else { root.to_owned() };
    let var = move |name: &str| match name {
        name if name == vendor.base_url => Some(url.clone()),
        name if name == vendor.key => Some("a-key-that-is-secret".to_owned()),
        _ => None,
    };
    vendor.model(name, &Setup::new(&var)).unwrap()
}

fn builder(model: impl Model) -> HarnessBuilder {
    let weather =
        |_, city: Map<String, Value>| async move { Ok::<_, ToolError>(format!("{} is sunny", city["city"])) };
    let weather = tool_fn("weather", "What the weather is", weather);
    Harness::builder("main", model).with_tool(weather).with_max_depth(0)
}

async fn events(model: impl Model, prompt: &str) -> Vec<AgentEvent> {
    limited(model, prompt, None).await
}

/// Returns the events of a run whose answers have a limit.
async fn limited(model: impl Model, prompt: &str, most: Option<u32>) -> Vec<AgentEvent> {
    let mut options = ModelOptions::new();
    options.max_output_tokens = most;
    let harness = builder(model).with_model_options(options).build().unwrap();
    let events: Vec<_> = harness.stream_events(prompt).collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// Returns why the last model call stopped.
fn stop(events: &[AgentEvent]) -> StopReason {
    let mut stops = events.iter().filter_map(|event| match &event.kind {
        EventKind::ModelCallEnd { stop_reason, .. } => Some(stop_reason.clone()),
        _ => None,
    });
    stops.next_back().unwrap()
}

fn joined(events: &[AgentEvent], text: impl Fn(&EventKind) -> Option<&str>) -> String {
    events.iter().filter_map(|event| text(&event.kind)).collect()
}

fn texts(events: &[AgentEvent]) -> String {
    joined(events, |kind| match kind {
        EventKind::TextBlockDelta { delta, .. } => Some(delta),
        _ => None,
    })
}

fn thoughts(events: &[AgentEvent]) -> String {
    joined(events, |kind| match kind {
        EventKind::ThinkingBlockDelta { delta, .. } => Some(delta),
        _ => None,
    })
}

fn names(events: &[AgentEvent]) -> Vec<(String, Value)> {
    let started = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolResultStart { tool_call_name, input, .. } => {
            Some((tool_call_name.to_string(), input.clone()))
        }
        _ => None,
    });
    started.collect()
}

fn error(events: &[AgentEvent]) -> String {
    let mut ends = events.iter().filter_map(|event| match &event.kind {
        EventKind::AgentEnd { outcome, error, .. } => Some((outcome, error)),
        _ => None,
    });
    let (outcome, error) = ends.next_back().unwrap();
    assert_eq!(*outcome, Outcome::Error, "{}", render(events));
    error.as_ref().unwrap().message.clone()
}

/// Every vendor at once, each against a server of its own: some of its answers depend on how often
/// it was asked.
async fn each<F: Future<Output = ()>>(check: impl Fn(&'static Provider, Peer) -> F) {
    let Some(packages) = packages("the mock of all vendors") else { return };
    join_all(PROVIDERS.iter().map(|vendor| check(vendor, Peer::aimock(&packages)))).await;
}

#[tokio::test]
async fn every_vendors_answers_are_read_from_a_server_that_is_not_ours() {
    each(async |vendor, peer| {
        let ask = |prompt: &'static str| events(model(vendor, "m", &peer.url), prompt);
        let hello = ask("say hello").await;
        assert_eq!(texts(&hello), "Hello from a server that is not ours.", "{}", vendor.name);
        assert_eq!(stop(&hello), StopReason::Stop, "{}", vendor.name);
        let deltas =
            hello.iter().filter(|event| matches!(event.kind, EventKind::TextBlockDelta { .. })).count();
        assert!(deltas > 1, "{}: it streams", vendor.name);

        let both = ask("both cities").await;
        let city = |name: &str| ("weather".to_owned(), serde_json::json!({ "city": name }));
        assert_eq!(names(&both), [city("Paris"), city("Rome")], "{}", vendor.name);
        assert_eq!(texts(&both), "I look at both. Both are sunny.", "{}", vendor.name);

        let thought = ask("think first").await;
        assert_eq!(texts(&thought), "Thought.", "{}", vendor.name);
        // What this server calls `reasoning_content` is `thinking` in Ollama's own API.
        let expected = if vendor.name == "ollama" { "" } else { "Let me think about it." };
        assert_eq!(thoughts(&thought), expected, "{}", vendor.name);

        let long = limited(model(vendor, "m", &peer.url), "too long", Some(9)).await;
        // In two of its APIs, of which xAI has one, it says that this answer ended by itself.
        let is_said = !matches!(vendor.name, "ollama" | "responses" | "xai");
        let expected = if is_said { StopReason::Length } else { StopReason::Stop };
        assert_eq!((&*texts(&long), stop(&long)), ("This is cut off by the", expected), "{}", vendor.name);
    })
    .await;
}

#[tokio::test]
async fn every_vendors_faults_are_told_apart() {
    each(async |vendor, peer| {
        let ask = |prompt: &'static str| events(model(vendor, "m", &peer.url), prompt);
        let busy = ask("busy once").await;
        assert_eq!(texts(&busy), "No longer busy.", "{}: {}", vendor.name, render(&busy));
        let refused =
            |event: &AgentEvent| matches!(event.kind, EventKind::RateLimitWait { refusal: Some(_), .. });
        assert!(busy.iter().any(refused), "{}: {}", vendor.name, render(&busy));

        let none = ask("no such model").await;
        assert!(error(&none).contains("The model does not exist."), "{}: {}", vendor.name, error(&none));
        // These are tried again and again, and so all at once here.
        let (down, broken, silent) = tokio::join!(ask("down for good"), ask("break off"), ask("hang up"));
        assert!(error(&down).contains("It is down."), "{}: {}", vendor.name, error(&down));
        assert!(texts(&broken).starts_with("This breaks off"), "{}: {}", vendor.name, render(&broken));
        assert!(error(&broken).contains("was cut off"), "{}: {}", vendor.name, error(&broken));
        assert_eq!(texts(&silent), "", "{}", vendor.name);
        assert!(error(&silent).contains("did not answer"), "{}: {}", vendor.name, error(&silent));
    })
    .await;
}

/// Which of our providers llama.cpp can be asked by.
const SPOKEN: [&str; 3] = ["openai", "responses", "anthropic"];

/// In one test, for one model at a time is enough for a small machine.
#[tokio::test]
async fn a_real_model_answers_through_three_apis() {
    let Some(packages) = packages("llama.cpp") else { return };
    let peer = Peer::llama(&packages);
    for name in SPOKEN {
        it_streams(name, &peer).await;
    }
    it_holds_its_answer_to_a_schema(&peer).await;
    a_drop_stops_it(&peer).await;
    let asked = OpenAi::new("smollm2").with_base_url(&format!("{}/v1", peer.url)).unwrap();
    drop(peer);
    let error = builder(asked).build().unwrap().call("Hi").await.unwrap_err();
    assert!(error.to_string().contains("can't be reached"), "{error}");
}

fn ask(name: &str, peer: &Peer, max_tokens: u32) -> Harness {
    let mut options = ModelOptions::default();
    (options.temperature, options.max_output_tokens) = (Some(0.0), Some(max_tokens));
    let model = model(provider(name).unwrap(), "smollm2", &peer.url);
    Harness::builder("main", model).with_model_options(options).with_max_depth(0).build().unwrap()
}

async fn it_streams(name: &str, peer: &Peer) {
    let events: Vec<_> =
        ask(name, peer, 16).stream_events("Write one sentence about the sea.").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let deltas = events.iter().filter(|event| matches!(event.kind, EventKind::TextBlockDelta { .. })).count();
    assert!(deltas > 5 && texts(&events).contains(' '), "{name}: {}", render(&events));
    let usage = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::ModelCallEnd { usage, .. } => *usage,
        _ => None,
    });
    let usage = usage.unwrap();
    assert!(usage.input_tokens > 0 && (1..=16).contains(&usage.output_tokens), "{name}: {usage:?}");
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mood {
    /// A person's mood.
    mood: Kind,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Happy,
    Sad,
}

async fn it_holds_its_answer_to_a_schema(peer: &Peer) {
    let model =
        OpenAi::new("smollm2").with_base_url(&format!("{}/v1", peer.url)).unwrap().with_json_schema(true);
    let harness = Harness::builder("main", model).with_max_depth(0).build().unwrap();
    let Mood { mood } = harness.call_typed("How does a child feel on its birthday?").await.unwrap();
    assert!(matches!(mood, Kind::Happy | Kind::Sad));
}

async fn a_drop_stops_it(peer: &Peer) {
    for name in SPOKEN {
        let mut run = ask(name, peer, 2000).stream_events("Tell a long story of a ship, and do not stop.");
        while let Some(event) = run.next().await {
            if matches!(event.kind, EventKind::TextBlockDelta { .. }) {
                break;
            }
        }
        drop(run);
    }
    // Both of its places are free again, or this would wait for the stories.
    let harness = ask("openai", peer, 2);
    let answered = tokio::time::timeout(std::time::Duration::from_secs(30), harness.call("Hi")).await;
    assert!(answered.is_ok());
}
