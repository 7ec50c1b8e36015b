//! A conversation that is many times longer than a real model's context.

use std::{env, sync::Arc};

use mainstem::{
    event::AgentEvent,
    journal::{Journal, SqliteJournal},
    message::{Message, StopReason},
    model::{ModelOptions, ModelRequest, ModelStream, Retry, scripted::Turn},
    prelude::*,
    react::Compaction,
};
use mainstem_testing::laws;

use crate::peer::{Peer, packages};

/// Writes notes with all that it is told of boxes: the model that answers is too small for that.
struct Notes;

impl Model for Notes {
    fn name(&self) -> &str {
        "notes"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let text = request.messages[0].text();
        let mut facts: Vec<_> = text.split('|').filter(|fact| fact.starts_with("Box ")).collect();
        facts.sort_unstable();
        facts.dedup();
        let notes = facts.iter().map(|fact| format!("|{fact}|\n")).collect::<String>();
        let request = ModelRequest { messages: Vec::new(), ..request };
        ScriptedModel::new().agent(&*request.agent, [Turn::new().text(notes)]).stream(request)
    }
}

/// Returns all events of the session: a journal reads a page at a time.
async fn record(journal: &Arc<dyn Journal>) -> Vec<AgentEvent> {
    let (mut all, mut next) = (Vec::new(), 1);
    loop {
        let page = journal.read(&"s".parse().unwrap(), next, 1000).await.unwrap();
        let Some(last) = page.last() else { return all };
        next = last.seq + 1;
        all.extend(page);
    }
}

fn is_refused(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ModelCallEnd { stop_reason: StopReason::Error, .. })
}

/// Each turn has a fact. The context has room for few of them: the server names its size when it
/// refuses the first prompt that is too long, and refuses no other, also after a restart.
#[tokio::test]
async fn a_conversation_outgrows_a_real_context_and_goes_on() {
    let Some(packages) = packages("llama.cpp") else { return };
    let turns = if env::var_os("RUN_SLOW_TESTS").is_some() { 500 } else { 24 };
    let peer = Peer::llama(&packages);
    let dir = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for half in 0..2 {
        let journal: Arc<dyn Journal> = Arc::new(SqliteJournal::open(dir.path().join("j.db")).unwrap());
        let model = OpenAi::new("smollm2").with_base_url(&format!("{}/v1", peer.url)).unwrap();
        // The server closes idle connections, also in the moment of a request.
        let model = Retry::new(model);
        let mut options = ModelOptions::new();
        (options.temperature, options.max_output_tokens) = (Some(0.0), Some(8));
        let harness = Harness::builder("main", model)
            .with_model_options(options)
            .with_compaction(Compaction::default().with_model(Notes))
            .with_journal(journal.clone())
            .with_max_depth(0)
            .build()
            .unwrap();
        let session = harness.open_session("s").await.unwrap();
        for turn in half * turns / 2..(half + 1) * turns / 2 {
            // Every tenth is worth noting.
            let fact = if turn % 10 == 0 { format!("|Box {turn} has {}| ", turn * 7) } else { String::new() };
            let text = format!("{fact}Say yes. {}", "The sea is wide and blue. ".repeat(40));
            let reply = session.run(text).unwrap().reply().await;
            reply.unwrap_or_else(|error| panic!("turn {turn}: {error}"));
        }
        let history: String = session.history().iter().map(|message: &Arc<Message>| message.text()).collect();
        assert!(history.contains("|Box 0 has 0|"), "the first turn is known: {history}");
        let events = record(&journal).await;
        laws(&events).unwrap_or_else(|error| panic!("{error}"));
        refused = events.iter().filter(|event| is_refused(&event.kind)).count();
        let compactions =
            events.iter().filter(|event| matches!(event.kind, EventKind::StateCheckpoint { .. })).count();
        assert!(compactions > half + 1, "{compactions}");
    }
    // One a process, which learns the size then.
    assert!(refused <= 2, "{refused} prompts were refused");
}
