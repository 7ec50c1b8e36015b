//! What `tracing` is told: OpenTelemetry's spans for generative AI, with the right parents.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use mainstem::{model::scripted::Turn, prelude::*};
use serde_json::json;
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

use crate::support::OpenNow as _;
use crate::support::{harness, ms, spawn_args};

/// Keeps every span: its parent and its fields.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<u64, Span>>>);

#[derive(Clone, Default)]
struct Span {
    parent: Option<u64>,
    /// What it follows from.
    cause: Option<u64>,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Span {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Kept {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context.span(id).and_then(|span| span.parent().map(|parent| parent.id().into_u64()));
        let mut span = Span { parent, ..Span::default() };
        attributes.record(&mut span);
        self.0.lock().unwrap().insert(id.into_u64(), span);
    }

    fn on_follows_from(&self, id: &Id, cause: &Id, _: Context<'_, S>) {
        if let Some(span) = self.0.lock().unwrap().get_mut(&id.into_u64()) {
            span.cause = Some(cause.into_u64());
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        if let Some(span) = self.0.lock().unwrap().get_mut(&id.into_u64()) {
            values.record(span);
        }
    }
}

impl Kept {
    /// Returns the names of the spans from the outermost to each one.
    fn paths(&self) -> Vec<String> {
        let spans = self.0.lock().unwrap();
        let name = |id: &u64| {
            let cause =
                spans[id].cause.map(|cause| format!(" (after {})", spans[&cause].fields["otel.name"]));
            spans[id].fields["otel.name"].clone() + &cause.unwrap_or_default()
        };
        let path = |id: &u64| {
            let mut path: Vec<_> = std::iter::successors(Some(*id), |id| spans[id].parent).collect();
            path.reverse();
            path.iter().map(name).collect::<Vec<_>>().join(" / ")
        };
        spans.keys().map(path).collect()
    }

    fn fields(&self, name: &str) -> BTreeMap<&'static str, String> {
        let spans = self.0.lock().unwrap();
        spans.values().find(|span| span.fields["otel.name"] == name).unwrap().fields.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn spans_follow_the_fleet() {
    let mut background = spawn_args("kid", "dig");
    background["timeout_seconds"] = 0.into();
    let model = ScriptedModel::named("tiny")
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", spawn_args("kid", "look"))
                    .call("agent_spawn", background)
                    .call("flaky", json!({ "how": "error" })),
                Turn::new().text("Done."),
                Turn::new().text("Gold."),
            ],
        )
        .agent(
            "kid",
            [Turn::new().wait(ms(10)).call("lookup", json!({ "word": "gold" })), Turn::new().text("Gold.")],
        );
    // The one that is waited for lies below the call, the one that is not has a trace of its own.
    let kept = Kept::default();
    // While there is only one subscriber, tracing asks that of the current thread whether a span is
    // wanted, and remembers the answer for all threads; and other tests run on those.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(kept.clone()));
    let harness = harness(model).with_subagent(AgentSpec::new("kid", "K")).build().unwrap();
    let options = RunOptions::new().with_background(Background::Wait);
    let _events: Vec<_> =
        harness.session("s").run(RunRequest::new("go").with_options(options)).unwrap().collect().await;
    let mut paths = kept.paths();
    paths.sort();
    insta::assert_snapshot!(paths.join("\n"), @"
    invoke_agent kid (after execute_tool agent_spawn)
    invoke_agent kid (after execute_tool agent_spawn) / chat tiny
    invoke_agent kid (after execute_tool agent_spawn) / chat tiny
    invoke_agent kid (after execute_tool agent_spawn) / execute_tool lookup
    invoke_agent main
    invoke_agent main / chat tiny
    invoke_agent main / chat tiny
    invoke_agent main / chat tiny
    invoke_agent main / execute_tool agent_spawn
    invoke_agent main / execute_tool agent_spawn
    invoke_agent main / execute_tool agent_spawn / invoke_agent kid
    invoke_agent main / execute_tool agent_spawn / invoke_agent kid / chat tiny
    invoke_agent main / execute_tool agent_spawn / invoke_agent kid / chat tiny
    invoke_agent main / execute_tool agent_spawn / invoke_agent kid / execute_tool lookup
    invoke_agent main / execute_tool flaky
    ");
    let invoked = kept.fields("invoke_agent kid");
    assert_eq!(invoked["gen_ai.agent.id"], "agent:kid:1");
    assert_eq!(invoked["gen_ai.conversation.id"], "sub-1");
    assert!(invoked["gen_ai.usage.output_tokens"].parse::<u64>().unwrap() > 0);
    let chat = kept.fields("chat tiny");
    assert_eq!(
        (chat["gen_ai.request.model"].as_str(), chat["gen_ai.response.finish_reasons"].as_str()),
        ("tiny", "tool_calls")
    );
    let provider = |span: &str| kept.fields(span)["gen_ai.provider.name"].clone();
    assert_eq!((provider("chat tiny"), provider("invoke_agent kid")), ("scripted".into(), "scripted".into()));
    let failed = kept.fields("execute_tool flaky");
    assert_eq!((failed["gen_ai.tool.call.id"].as_str(), failed["error.type"].as_str()), ("call-3", "error"));
    assert!(!kept.fields("execute_tool lookup").contains_key("error.type"));
}
