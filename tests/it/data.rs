//! Pictures and documents: stored once beside the events, which refer to them, and sent to the
//! model.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use mainstem::{
    journal::{Journal, MemoryJournal, SqliteJournal, WHOLE},
    message::{ContentBlock, DataSource, Message, Opaque, Role},
    model::{ModelRequest, ModelStream, scripted::Turn},
    prelude::*,
    session::data_id,
};
use mainstem_testing::{FaultyJournal, Recording, laws, render};
use serde_json::{Map, Value, json};

use crate::support::{OpenNow, harness};

/// Notes the messages that the model gets, a text for each call.
struct Shown {
    calls: Arc<Mutex<Vec<String>>>,
    inner: ScriptedModel,
}

impl Model for Shown {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let messages: Vec<_> = request.messages.iter().map(|message| shown(&message.content)).collect();
        self.calls.lock().unwrap().push(messages.join(" | "));
        self.inner.stream(request)
    }
}

/// Returns content in a line: data as its first bytes and their number.
fn shown(content: &[ContentBlock]) -> String {
    let line = |block: &ContentBlock| match block {
        ContentBlock::Text { text, .. } => text.clone(),
        ContentBlock::ToolCall(call) => format!("{}()", call.name),
        ContentBlock::ToolResult(result) => format!("result {}", shown(&result.content)),
        ContentBlock::Data { source: DataSource::Base64(digits), .. } => {
            let bytes = BASE64_STANDARD.decode(digits).unwrap();
            format!("<{} × {}>", bytes.len(), bytes[0])
        }
        ContentBlock::Data { source, .. } => format!("{source:?}"),
        _ => "?".to_owned(),
    };
    content.iter().map(line).collect::<Vec<_>>().join(" ")
}

fn picture(bytes: Vec<u8>) -> ContentBlock {
    let source = DataSource::Base64(BASE64_STANDARD.encode(bytes));
    ContentBlock::Data { media_type: "image/png".to_owned(), source, opaque: Opaque::new() }
}

fn look() -> impl Tool {
    tool_fn("look", "Takes a picture", |_, _: Map<String, Value>| async move {
        Ok::<_, ToolError>(ToolOutput::new(vec![ContentBlock::text("Here."), picture(vec![2; 50_000])]))
    })
}

struct Rig {
    harness: Harness,
    journal: Arc<dyn Journal>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Rig {
    fn open(path: &Path, turns: impl IntoIterator<Item = Turn>) -> Self {
        let journal: Arc<dyn Journal> = Arc::new(SqliteJournal::open(path).unwrap());
        let calls = Arc::<Mutex<Vec<String>>>::default();
        let inner = ScriptedModel::new().agent("main", turns);
        let model = Shown { calls: calls.clone(), inner };
        let harness = harness(model).with_tool(look()).with_journal(journal.clone());
        Self { harness: harness.build().unwrap(), journal, calls }
    }

    async fn run(&self, content: Vec<ContentBlock>) -> Vec<AgentEvent> {
        let session = self.harness.open_session("s").await.unwrap();
        let message = Message::new(Role::User, content);
        let events: Vec<_> = session.run(message).unwrap().collect().await;
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        events
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn data_is_stored_once_and_every_call_of_the_model_gets_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let turns = [Turn::new().call("look", json!({})), Turn::new().text("Seen.")];
    let rig = Rig::open(&path, turns);
    let events = rig.run(vec![ContentBlock::text("What is this?"), picture(vec![1; 60_000])]).await;
    assert_eq!(
        rig.calls(),
        ["What is this? <60000 × 1>", "What is this? <60000 × 1> | look() | result Here. <50000 × 2>",]
    );
    for event in &events {
        assert!(event.to_json().len() < 2_000, "{event}");
    }
    insta::assert_snapshot!(render(&events));
    let id = data_id(&[2; 50_000]);
    assert_eq!(rig.journal.data(&"s".parse().unwrap(), &id, WHOLE).await.unwrap().unwrap(), vec![2; 50_000]);
    rig.harness.shutdown(std::time::Duration::ZERO).await;
    rig.journal.close().await.unwrap();
    drop(rig);

    // A later process has it, too, and stores what it has seen no second time.
    let before = std::fs::metadata(&path).unwrap().len();
    let rig = Rig::open(&path, [Turn::new().text("The same.")]);
    rig.run(vec![picture(vec![1; 60_000])]).await;
    assert_eq!(
        rig.calls(),
        ["What is this? <60000 × 1> | look() | result Here. <50000 × 2> | Seen. | <60000 × 1>"]
    );
    rig.harness.shutdown(std::time::Duration::ZERO).await;
    rig.journal.close().await.unwrap();
    let grown = std::fs::metadata(&path).unwrap().len() - before;
    assert!(grown < 40_000, "{grown}");
}

/// A cancel does not wait for the journal, and the session goes on.
#[tokio::test]
async fn a_run_is_cancelled_while_its_data_is_stored() {
    let input = vec![ContentBlock::text("What is this?"), picture(vec![1; 60_000])];
    for (input, turns) in
        [(input, vec![]), (vec![ContentBlock::text("Look.")], vec![Turn::new().call("look", json!({}))])]
    {
        let journal = FaultyJournal::new(MemoryJournal::new());
        let turns = turns.into_iter().chain([Turn::new().text("Seen.")]);
        let model = ScriptedModel::new().agent("main", turns);
        let harness = harness(model).with_tool(look()).with_journal(journal.clone()).build().unwrap();
        let session = harness.open_session("s").await.unwrap();
        journal.hold_data(true);
        let run = session.run(Message::new(Role::User, input)).unwrap();
        let handle = run.handle();
        let stop = async {
            while journal.held_data() == 0 {
                tokio::task::yield_now().await;
            }
            handle.cancel();
        };
        let (events, ()) = tokio::join!(run.collect::<Vec<_>>(), stop);
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        assert!(render(&events).contains("AGENT_END cancelled"), "{}", render(&events));
        journal.hold_data(false);
        let next: Vec<_> = session.run("And now?").unwrap().collect().await;
        assert!(render(&next).contains("AGENT_RESULT \"Seen.\""), "{}", render(&next));
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_is_told_of_data_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let rig = Rig::open(&path, [Turn::new().text("One."), Turn::new().text("Two.")]);
    rig.run(vec![picture(vec![1; 60_000])]).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("DELETE FROM data", []).unwrap();
    rig.run(vec![ContentBlock::text("And?")]).await;
    assert_eq!(
        rig.calls(),
        ["<60000 × 1>", "[image/png of 60000 bytes was here; it is no longer stored] | One. | And?"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_record_with_references_is_played_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::open(
        &dir.path().join("journal.db"),
        [Turn::new().call("look", json!({})), Turn::new().text("Seen.")],
    );
    let events = rig.run(vec![ContentBlock::text("What is this?"), picture(vec![1; 60_000])]).await;
    let lines: String = events.iter().map(|event| event.to_json() + "\n").collect();
    assert!(lines.contains("\"stored\"") && !lines.contains("\"base64\""));
    let recording = Recording::parse(&lines).unwrap();
    // With the tool itself, whose results are in the messages there; then another picture.
    let played = |size| {
        let tool = tool_fn("look", "Takes a picture", move |_, _: Map<String, Value>| async move {
            Ok::<_, ToolError>(ToolOutput::new(vec![ContentBlock::text("Here."), picture(vec![2; size])]))
        });
        harness(recording.model()).with_tool(tool).build().unwrap()
    };
    let again = recording.play(&played(50_000)).await;
    recording.compare(&again).unwrap();
    let again = recording.play(&played(50_001)).await;
    assert!(recording.compare(&again).unwrap_err().to_string().contains("/data/source/stored/sha256"));
}

#[tokio::test(start_paused = true)]
async fn a_session_in_memory_has_its_data_in_its_messages() {
    let calls = Arc::<Mutex<Vec<String>>>::default();
    let inner = ScriptedModel::new().agent("main", [Turn::new().text("One.")]);
    let harness = harness(Shown { calls: calls.clone(), inner }).build().unwrap();
    let message = Message::new(Role::User, vec![picture(vec![1; 60_000])]);
    let events: Vec<_> = harness.session("s").run(message).unwrap().collect().await;
    laws(&events).unwrap();
    assert!(events[0].to_json().len() > 80_000);
    assert_eq!(*calls.lock().unwrap(), ["<60000 × 1>"]);
}
