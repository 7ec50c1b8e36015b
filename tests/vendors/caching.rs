//! The prompts of a conversation begin alike, byte for byte: vendors cache beginnings.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use mainstem::{
    message::Usage,
    model::{Model, ModelRequest, ModelStream, scripted::Turn},
    policy::{Cost, Price, Prices},
    prelude::*,
    provider::PROVIDERS,
};
use mainstem_testing::ModelServer;
use serde_json::{Map, Value, json};

use crate::contract::{ROOT, model};

/// What the requests of two runs of one session say, in the order in which they are sent.
async fn bodies(model: impl FnOnce(&ModelServer) -> Arc<dyn Model>) -> Vec<String> {
    let turns = [
        Turn::new().text("I look. ").call("look", json!({"at": 1})).call("see", json!({"at": [2, "ü"]})),
        Turn::new().thinking("Hm.").call("look", json!({})),
        Turn::new().text("Both."),
        Turn::new().call("see", json!({"at": 3})),
        Turn::new().text("Again."),
    ];
    let calls = turns.len();
    let server = ModelServer::start(ScriptedModel::new().agent(ROOT, turns)).await.unwrap();
    let noop = |_, _: Map<String, Value>| async { Ok::<_, ToolError>("42") };
    let harness = Harness::builder(ROOT, model(&server))
        .with_system_prompt("Be brief.")
        .with_tool(tool_fn("see", "Sees", noop))
        .with_tool(tool_fn("look", "Looks", noop))
        .with_subagent(AgentSpec::new("kid", "A kid"))
        .build()
        .unwrap();
    let session = harness.open_session("s").await.unwrap();
    for input in ["go", "go on"] {
        session.queue(input).reply().await.unwrap();
    }
    let bodies = server.bodies();
    assert_eq!(bodies.len(), calls);
    bodies.into_iter().map(|body| String::from_utf8(body).unwrap()).collect()
}

/// Returns what two texts begin with.
fn common<'a>(one: &'a str, other: &str) -> &'a str {
    let end = one.char_indices().zip(other.chars()).find(|((_, one), other)| one != other);
    end.map_or(one, |((at, _), _)| &one[..at])
}

#[tokio::test]
async fn a_prompt_begins_as_the_one_before_it() {
    for vendor in PROVIDERS {
        let bodies = bodies(|server| model(vendor, server, ROOT)).await;
        // The marks of Anthropic's cache move; they are no part of the prompt.
        let bodies: Vec<_> =
            bodies.iter().map(|body| body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")).collect();
        for pair in bodies.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let shared = common(before, after);
            let conversation = before.rfind(shared).map(|_| &before[shared.len()..]).unwrap();
            assert_eq!(
                conversation, "]}",
                "{}: the conversation goes on where it ended\n{before}\n{after}",
                vendor.name
            );
            assert!(shared.contains("Be brief.") && shared.contains("agent_spawn"), "{shared}");
        }
    }
}

#[tokio::test]
async fn anthropic_finds_the_end_of_the_last_prompt() {
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let vendor = PROVIDERS.iter().find(|row| row.name == "anthropic").unwrap();
    let bodies = bodies(|server| model(vendor, server, ROOT)).await;
    let ends = |body: &str| -> Vec<String> {
        body.match_indices(mark).map(|(at, _)| body[..at].replace(mark, "")).collect()
    };
    for pair in bodies.windows(2) {
        let (before, after) = (ends(&pair[0]), ends(&pair[1]));
        assert_eq!(after.len(), 4, "{}", pair[1]);
        assert!(after.contains(before.last().unwrap()), "{}\n{}", pair[0], pair[1]);
    }
}

#[tokio::test]
async fn what_a_vendor_read_from_its_cache_is_counted_and_priced() {
    let mut usage = Usage::new(2_000, 100);
    usage.cache_read_tokens = 1_600;
    let [input, output, read, write] = [10, 20, 1, 12].map(Cost::from_dollars);
    let price = Price::new(input, output).with_cache(read, write);
    for vendor in PROVIDERS {
        let script = ScriptedModel::new().agent(ROOT, [Turn::new().text("Hi.").usage(usage)]);
        let server = ModelServer::start(script).await.unwrap();
        let harness = Harness::builder(ROOT, model(vendor, &server, ROOT))
            .with_prices(Prices::default().with_price(ROOT, price))
            .build()
            .unwrap();
        let mut run = harness.stream_events("go");
        while run.next().await.is_some() {}
        let spent = &run.outcome().unwrap().usage;
        let counted = (spent.own.input_tokens, spent.own.cache_read_tokens, spent.own_cost);
        assert_eq!(counted, (2_000, 1_600, Some(400 * 10 + 1_600 + 100 * 20)), "{}", vendor.name);
    }
}

#[tokio::test]
async fn openai_gets_a_key_of_the_conversation_and_others_do_not() {
    let sent = async |name: &str| -> Vec<Value> {
        let vendor = PROVIDERS.iter().find(|row| row.name == name).unwrap();
        let bodies = bodies(|server| model(vendor, server, ROOT)).await;
        bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    };
    // Azure's servers are known by the service, OpenAI's by their host.
    let azure = sent("azure").await;
    let key = azure[0]["prompt_cache_key"].as_str().unwrap();
    assert!((1..=64).contains(&key.len()) && key != "s", "{key}");
    for body in &azure {
        assert_eq!(body["prompt_cache_key"], key);
        assert_eq!(body["stream_options"], json!({ "include_usage": true, "include_obfuscation": false }));
    }
    for body in sent("openai").await {
        assert_eq!(body.get("prompt_cache_key"), None);
        assert_eq!(body["stream_options"], json!({ "include_usage": true }));
    }
}

#[tokio::test]
async fn each_conversation_has_a_key_of_its_own() {
    let script = ScriptedModel::new()
        .agent(
            ROOT,
            [
                Turn::new().call("agent_spawn", json!({ "agent_id": "kid", "task": "t" })),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [Turn::new().text("Did it.")]);
    let keys = Arc::new(Mutex::new(Vec::new()));
    let model = Keys(script, keys.clone());
    let harness =
        Harness::builder(ROOT, model).with_subagent(AgentSpec::new("kid", "A kid")).build().unwrap();
    harness.call("go").await.unwrap();
    let keys = keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 3);
    assert!(keys[0].is_some() && keys[1].is_some(), "{keys:?}");
    assert!(keys[0] != keys[1] && keys[0] == keys[2], "{keys:?}");
}

/// A model that notes the keys of its requests.
struct Keys(ScriptedModel, Arc<Mutex<Vec<Option<Arc<str>>>>>);

impl Model for Keys {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.1.lock().unwrap().push(request.cache_key.clone());
        self.0.stream(request)
    }
}
