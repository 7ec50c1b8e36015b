//! Cassettes below the whole engine: a vendor's recorded answers replay as the same events, and a
//! missing answer is a clear error.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem::{
    message::Message,
    model::{Model, ModelError, ModelOptions, ModelRequest, OnCut, scripted::Turn},
    prelude::*,
    provider::{PROVIDERS, Provider, Setup},
};
use mainstem_cassette::{Cassette, CassetteBuilder, Mode};
use mainstem_testing::{CountedIds, FakeClock, ModelServer, laws, render};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::{Spawns, ms};

const KEY: &str = "a-key-that-is-secret";

/// Returns a model of this vendor, behind the cassette.
fn model(vendor: &Provider, cassette: &Cassette, name: &str) -> Arc<dyn Model> {
    let url = cassette.url().to_owned();
    let var = move |name: &str| match name {
        name if name == vendor.base_url => Some(url.clone()),
        name if name == vendor.key => Some(KEY.to_owned()),
        _ => None,
    };
    vendor.model(name, &Setup::new(&var)).unwrap()
}

/// Returns the end of the vendor's base URL.
fn path_of(vendor: &Provider) -> &'static str {
    if vendor.base_url == "OPENAI_BASE_URL" { "/v1" } else { "" }
}

/// The tapes of a test.
struct Shelf(TempDir);

impl Shelf {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn tape(&self, vendor: &Provider) -> PathBuf {
        self.0.path().join(format!("{}.jsonl", vendor.name))
    }

    fn text(&self, vendor: &Provider) -> String {
        std::fs::read_to_string(self.tape(vendor)).unwrap()
    }

    /// Records this script in the vendor's API. The server is dropped afterwards.
    async fn record<T>(
        &self,
        vendor: &Provider,
        script: ScriptedModel,
        work: impl AsyncFnOnce(&Cassette) -> T,
    ) -> T {
        let server = ModelServer::start(script).await.unwrap();
        let url = format!("{}{}", server.root_url(), path_of(vendor));
        let cassette =
            Cassette::builder(self.tape(vendor), &url).with_mode(Mode::Record).open().await.unwrap();
        let done = work(&cassette).await;
        cassette.finish().await.unwrap();
        done
    }

    /// Replays it, without the vendor.
    async fn replay(&self, vendor: &Provider) -> Cassette {
        let absent = format!("http://127.0.0.1:1{}", path_of(vendor));
        Cassette::builder(self.tape(vendor), &absent).with_mode(Mode::Replay).open().await.unwrap()
    }
}

/// Returns a model's answer to this, delta by delta, up to its end or its error.
async fn deltas(model: &Arc<dyn Model>, said: &str) -> Vec<String> {
    let messages = vec![Arc::new(Message::user(said))];
    let mut options = ModelOptions::new();
    options.on_cut = Some(OnCut::Fail);
    let options = Arc::new(options);
    let stream = model.stream(ModelRequest { messages, options, ..ModelRequest::default() });
    // The address in the error is not the vendor's.
    let shown = |delta: Result<_, ModelError>| match delta {
        Ok(delta) => format!("{delta:?}"),
        Err(error) => format!("{:?} {}", error.kind(), error.to_string().split_once(' ').unwrap().1),
    };
    stream.map(shown).collect().await
}

/// Checks that a script's answer is the same, recorded and replayed, over each vendor's API.
async fn check(turn: impl Fn() -> Turn, expected: &str) {
    for vendor in PROVIDERS {
        let (shelf, script) = (Shelf::new(), ScriptedModel::new().agent("m", [turn()]));
        let recorded = shelf
            .record(vendor, script, async |cassette| deltas(&model(vendor, cassette, "m"), "Hi").await)
            .await;
        assert!(format!("{recorded:?}").contains(expected), "{}: {recorded:?}", vendor.name);
        let cassette = shelf.replay(vendor).await;
        assert_eq!(deltas(&model(vendor, &cassette, "m"), "Hi").await, recorded, "{}", vendor.name);
        cassette.finish().await.unwrap();
        assert!(!shelf.text(vendor).contains("that-is-secret"), "{}", vendor.name);
    }
}

#[tokio::test]
async fn every_vendors_answer_replays_as_the_same_deltas() {
    check(|| Turn::new().thinking("Hm. ").text("Hello ").text("größe."), "größe").await;
    check(
        || Turn::new().text("Two.").call("look", json!({"at": 1})).call("see", json!({"at": ["ü"]})),
        "look",
    )
    .await;
}

#[tokio::test]
async fn what_goes_wrong_at_a_vendor_goes_wrong_again() {
    check(|| Turn::new().text("Hel").text("lo").wait(ms(5)).cut(), "Transport was cut off before its answer")
        .await;
    check(|| Turn::new().fail(ModelError::from_status(400, "no such thing")), "InvalidRequest answered 400")
        .await;
    let echo = || ModelError::from_status(401, format!("no such key: {KEY}"));
    // Providers show `[secret]`, tapes `[redacted]`.
    for vendor in PROVIDERS {
        let (shelf, script) = (Shelf::new(), ScriptedModel::new().agent("m", [Turn::new().fail(echo())]));
        let work = async |cassette: &Cassette| deltas(&model(vendor, cassette, "m"), "Hi").await;
        let recorded = shelf.record(vendor, script, work).await;
        let cassette = shelf.replay(vendor).await;
        let replayed = deltas(&model(vendor, &cassette, "m"), "Hi").await;
        assert_eq!(format!("{recorded:?}").replace("[secret]", "[redacted]"), format!("{replayed:?}"));
        cassette.finish().await.unwrap();
        let tape = shelf.text(vendor);
        assert!(tape.contains("no such key: [redacted]") && !tape.contains("that-is-secret"), "{tape}");
    }
}

#[tokio::test]
async fn a_miss_is_told_by_the_providers_error_and_by_the_cassette() {
    for vendor in PROVIDERS {
        let (shelf, script) = (Shelf::new(), ScriptedModel::new().agent("m", [Turn::new().text("Hello.")]));
        shelf
            .record(vendor, script, async |cassette| deltas(&model(vendor, cassette, "m"), "Paris?").await)
            .await;
        let cassette = shelf.replay(vendor).await;
        let said = deltas(&model(vendor, &cassette, "m"), &format!("Rome? {KEY}")).await;
        let name = vendor.name;
        assert_eq!(said.len(), 1, "{name}: it is not asked again: {said:?}");
        for part in [
            "InvalidRequest answered 417",
            ".jsonl has no response to POST /",
            "line 2 is nearest",
            "recorded \"Paris",
        ] {
            assert!(said[0].contains(part), "{name}: {part}: {}", said[0]);
        }
        let misses = cassette.misses();
        assert_eq!(misses.len(), 1, "{name}: {misses:?}");
        assert!(
            misses[0].contains("recorded \"Paris?\", requested \"Rome? [redacted]\""),
            "{name}: {misses:?}"
        );
        let error = cassette.finish().await.unwrap_err();
        assert!(!format!("{said:?} {misses:?} {error} {error:?}").contains("that-is-secret"), "{name}");
    }
}

/// Returns the events of each agent and of each call's result, without their times: which of two
/// children is first is up to the network.
async fn lanes(run: Run) -> BTreeMap<String, String> {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let mut lanes = BTreeMap::<_, Vec<_>>::new();
    for event in events {
        lanes.entry(lane(&event)).or_default().push(event);
    }
    let untimed =
        |line: &str| line.trim_start().split_once(' ').map(|(_, rest)| rest.trim_start().to_owned());
    let text = |events: Vec<_>| render(&events).lines().filter_map(untimed).collect::<Vec<_>>().join("\n");
    lanes.into_iter().map(|(key, events)| (key, text(events))).collect()
}

fn lane(event: &AgentEvent) -> String {
    use EventKind::{ToolResultEnd, ToolResultStart, ToolResultTextDelta};
    let agent = event.agent_key().map_or("main", |key| key.as_str());
    match &event.kind {
        ToolResultStart { tool_call_id, .. }
        | ToolResultTextDelta { tool_call_id, .. }
        | ToolResultEnd { tool_call_id, .. } => format!("{agent} {tool_call_id}"),
        _ => agent.to_owned(),
    }
}

fn fleet(model: Arc<dyn Model>) -> Harness {
    let fleet =
        Harness::builder("main", model).with_clock(FakeClock::default()).with_ids(CountedIds::default());
    let look = tool_fn("look", "Looks", |_, _: Map<String, Value>| async { Ok::<_, ToolError>("42") });
    fleet.with_tool(look).with_subagent(AgentSpec::new("kid", "A kid")).build().unwrap()
}

#[tokio::test]
async fn a_fleet_replays_as_the_same_timelines() {
    for vendor in PROVIDERS {
        let (shelf, both) =
            (Shelf::new(), Turn::new().text("Both. ").spawn("kid", "left").spawn("kid", "right"));
        let looks = || Turn::new().call("look", json!({}));
        let script = ScriptedModel::new()
            .agent_on("m", "go", [both, Turn::new().text("Done.")])
            .agent_on("m", "left", [looks(), Turn::new().pace(ms(3)).say("left is fine")])
            .agent_on("m", "right", [looks(), Turn::new().pace(ms(2)).say("right has a bug")]);
        let work =
            async |cassette: &Cassette| lanes(fleet(model(vendor, cassette, "m")).stream_events("go")).await;
        let recorded = shelf.record(vendor, script, work).await;
        assert_eq!(recorded.len(), 7, "{}: three agents and four calls: {recorded:?}", vendor.name);
        assert_eq!(
            shelf.text(vendor).lines().count(),
            7,
            "{}: a head, and two calls of each agent",
            vendor.name
        );
        for _ in 0..3 {
            let cassette = shelf.replay(vendor).await;
            assert_eq!(work(&cassette).await, recorded, "{}", vendor.name);
            cassette.finish().await.unwrap();
        }
    }
}

/// Returns an agent that asks for the weather.
fn meteorologist(model: impl Model) -> Harness {
    let weather = tool_fn("weather", "The weather in a city", |_, _: Map<String, Value>| async {
        Ok::<_, ToolError>("rain")
    });
    Harness::builder("meteorologist", model)
        .with_ids(CountedIds::default())
        .with_tool(weather)
        .build()
        .unwrap()
}

/// Returns the example's tape. Instructions and tools are ignored, so that they can be reworded.
fn weather(path: &Path, upstream: &str) -> CassetteBuilder {
    Cassette::builder(path, upstream).with_ignored("/tools").with_ignored("/messages/0/content")
}

const WEATHER: &str = "cassettes/weather.jsonl";

/// The example as a user writes it: recorded on its first run, with a key; later runs need neither
/// key nor network.
#[tokio::test]
async fn the_weather_is_as_it_was_recorded() {
    let tape = weather(Path::new(WEATHER), "https://api.openai.com/v1").open().await.unwrap();
    let model = OpenAi::new("gpt-4o-mini").with_base_url(tape.url()).unwrap();
    let key = std::env::var("OPENAI_API_KEY").unwrap_or_default();
    let harness = meteorologist(if key.is_empty() { model } else { model.with_api_key(key) });
    assert_eq!(harness.call("How is the weather in Paris?").await.unwrap().text(), "It rains in Paris.");
    tape.finish().await.unwrap();
}

/// The tape in the repository was recorded from a script. A recording today equals it, except for
/// times.
#[tokio::test]
async fn the_weather_is_recorded_as_it_always_was() {
    let turns =
        [Turn::new().call("weather", json!({"city": "Paris"})), Turn::new().say("It rains in Paris.")];
    let server = ModelServer::start(ScriptedModel::new().agent("gpt-4o-mini", turns)).await.unwrap();
    let shelf = tempfile::tempdir().unwrap();
    let path = shelf.path().join("weather.jsonl");
    let cassette = weather(&path, &server.base_url()).with_mode(Mode::Record).open().await.unwrap();
    let model = OpenAi::new("gpt-4o-mini").with_base_url(cassette.url()).unwrap().with_api_key(KEY);
    meteorologist(model).call("How is the weather in Paris?").await.unwrap();
    cassette.finish().await.unwrap();
    let [recorded, expected] = [&path, Path::new(WEATHER)].map(untimed);
    assert_eq!(recorded, expected, "the tape's format has changed, or the script");
}

/// Returns the lines of a tape without the times.
fn untimed(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for chunk in
        lines.iter_mut().flat_map(|line| line["response"]["chunks"].as_array_mut().into_iter().flatten())
    {
        chunk.as_object_mut().unwrap().remove("ms");
    }
    lines
}
