//! How full a conversation may be, and what stays of one that is shortened.

use std::sync::{Arc, Mutex};

use base64::{Engine, prelude::BASE64_STANDARD};
use mainstem::{
    journal::MemoryJournal,
    message::{ContentBlock, DataSource, Message, Opaque, Role},
    model::{ModelError, ModelOptions, ModelRequest, ModelStream, scripted::Turn},
    prelude::*,
};
use serde_json::json;

use crate::{
    compaction::{Small, read, sizes, summarizes, windows},
    support::{OpenNow, harness, workspace},
};

/// Reads a long page with each call, until it has read so many.
fn reads_on(pages: usize) -> impl Fn(&ModelRequest) -> Turn {
    let read = Mutex::new(0);
    move |request| {
        if summarizes(request) {
            return Turn::new().text("It reads pages.");
        }
        let mut read = read.lock().unwrap();
        *read += 1;
        match *read <= pages {
            true => Turn::new().call("page", json!({ "number": *read })),
            false => Turn::new().text("It is a book."),
        }
    }
}

fn long_page() -> impl Tool {
    let page = |_, args: serde_json::Map<String, serde_json::Value>| async move {
        Ok::<_, ToolError>(format!("Page {}. {}", args["number"], "word ".repeat(3_000)))
    };
    tool_fn("page", "Read a page", page).with_read_only(true)
}

/// A request that fills most of the window leaves a summary little to win; nevertheless each prompt
/// leaves room for an answer.
#[tokio::test(start_paused = true)]
async fn a_prompt_without_room_for_an_answer_is_compacted_again() {
    let (model, prompts) = Small::new(100_000, reads_on(8));
    let run = harness(model).with_tool(long_page()).with_compaction(windows(100_000)).build().unwrap();
    let lines = read(run.stream_events("word ".repeat(62_000))).await;
    assert!(lines.last().unwrap().starts_with("main AGENT_END success"), "{lines:#?}");
    let sizes = sizes(&prompts);
    let most = sizes.iter().max().unwrap();
    assert!(*most > 360_000, "they were large: {sizes:?}");
    assert!(*most <= 400_000 - 4 * 4_096, "there is no room for an answer: {sizes:?}");
}

/// A vendor's tokens are shorter than usual: the first prompt of a later turn is measured in them.
#[tokio::test(start_paused = true)]
async fn the_size_of_tokens_is_remembered() {
    let (mut model, prompts) = Small::new(16_000, |request| {
        Turn::new().text(if summarizes(request) { "They talk." } else { "word" })
    });
    model.token = 2;
    let harness = harness(model).with_compaction(windows(16_000)).build().unwrap();
    let session = harness.session("s");
    read(session.run("word ".repeat(2_400)).unwrap()).await;
    let lines = read(session.run("word ".repeat(3_000)).unwrap()).await;
    assert!(lines.iter().any(|line| line.contains("for compaction")), "{lines:#?}");
    let sizes = sizes(&prompts);
    assert!(sizes.iter().all(|size| *size <= 32_000), "no prompt was refused: {sizes:?}");
}

/// The fields that a caller adds for the agent's vendor are in the call that summarizes, too,
/// unless another model makes it.
#[tokio::test(start_paused = true)]
async fn a_summary_has_the_fields_of_the_agents_vendor() {
    let check = async |other: bool, expected: bool| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let note = move |request: &ModelRequest| {
            if summarizes(request) {
                noted.lock().unwrap().push(request.options.extra.contains_key("service_tier"));
            }
            Turn::new().text("word ".repeat(700))
        };
        let (model, _) = Small::new(4_000, note.clone());
        let (summarizer, _) = Small::new(100_000, note);
        let compaction = if other { windows(4_000).with_model(summarizer) } else { windows(4_000) };
        let mut options = ModelOptions::new();
        options.extra.insert("service_tier".into(), json!("flex"));
        let harness = harness(model).with_compaction(compaction).with_model_options(options).build().unwrap();
        let session = harness.session("s");
        for turn in 1..=4 {
            read(session.run(format!("Turn {turn}.")).unwrap()).await;
        }
        let seen = seen.lock().unwrap();
        assert!(!seen.is_empty() && seen.iter().all(|has| *has == expected), "{seen:?}");
    };
    check(false, true).await;
    check(true, false).await;
}

/// A model whose service accepts so many bytes of data.
struct Heavy {
    accepts: usize,
    /// The texts and the data of each request.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Model for Heavy {
    fn name(&self) -> &str {
        "heavy"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let mut bytes = 0;
        let mut line = |block: &ContentBlock| match block {
            ContentBlock::Data { source: DataSource::Base64(digits), .. } => {
                bytes += digits.len() / 4 * 3;
                format!("<{}>", digits.len() / 4 * 3)
            }
            block => block.as_text().unwrap_or("?").to_owned(),
        };
        let blocks = request.messages.iter().flat_map(|message| &message.content);
        let shown = blocks.map(&mut line).collect::<Vec<_>>().join(" ");
        self.seen.lock().unwrap().push(shown);
        let turn = match bytes > self.accepts {
            true => Turn::new().fail(ModelError::from_status(413, "Request exceeds the maximum size")),
            false => Turn::new().text("Seen."),
        };
        ScriptedModel::named("heavy")
            .agent("main", [turn])
            .stream(ModelRequest { messages: Vec::new(), ..request })
    }
}

fn picture(bytes: usize) -> Message {
    let source = DataSource::Base64(BASE64_STANDARD.encode(vec![1; bytes]));
    let picture = ContentBlock::Data { media_type: "image/png".into(), source, opaque: Opaque::new() };
    Message::new(Role::User, vec![ContentBlock::text(format!("Look {bytes}.")), picture])
}

/// A service's limit on bytes differs from one on tokens: the oldest data leaves the conversation,
/// that of the request stays.
#[tokio::test(start_paused = true)]
async fn a_request_with_too_many_bytes_loses_its_oldest_data() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let model = Heavy { accepts: 150_000, seen: seen.clone() };
    let harness = harness(model).with_journal(MemoryJournal::default()).build().unwrap();
    let session = harness.open_session("s").await.unwrap();
    let run = async |bytes| {
        let lines = read(session.run(picture(bytes)).unwrap()).await;
        (std::mem::take(&mut *seen.lock().unwrap()), lines)
    };
    run(60_000).await;
    run(72_000).await;
    let (requests, lines) = run(48_000).await;
    assert!(lines.last().unwrap().starts_with("main AGENT_END success"), "{lines:#?}");
    assert_eq!(
        requests,
        [
            "Look 60000. <60000> Seen. Look 72000. <72000> Seen. Look 48000. <48000>",
            "Look 60000. [image/png was removed to save space] Seen. \
             Look 72000. [image/png was removed to save space] Seen. Look 48000. <48000>",
        ]
    );
    // It stays removed, and the request's own data is not given up.
    let (requests, lines) = run(156_000).await;
    assert!(lines.last().unwrap().starts_with("main AGENT_END error"), "{lines:#?}");
    // One is for a summary.
    let own = requests.iter().filter(|request| request.ends_with("<156000>")).count();
    assert_eq!((requests.len(), own), (4, 3), "{requests:#?}");
}

/// What an agent has at present, and what a skill says, stay.
#[tokio::test(start_paused = true)]
async fn open_tasks_and_skills_stay() {
    const PDF: &str = "---\nname: pdf\ndescription: Fills in PDF forms\n---\nUse pdftk, and nothing else.\n";
    let ws = workspace(&[("skills/pdf/SKILL.md", PDF)]);
    let (model, _) = Small::new(4_000, |request| {
        if summarizes(request) {
            return Turn::new().text("It works.");
        }
        if &*request.agent == "kid" {
            return Turn::new().hang();
        }
        let calls = request.messages.iter().flat_map(|message| message.tool_calls()).count();
        let text: String = request.messages.iter().map(|message| message.text()).collect();
        let is_short = text.contains("<conversation-summary>");
        let spawn = json!({ "agent_id": "kid", "task": "count sheep", "timeout_seconds": 0 });
        match (is_short, calls) {
            (true, _) => Turn::new().text(text),
            (_, 0) => Turn::new().call("load_skill", json!({ "name": "pdf" })).call("agent_spawn", spawn),
            _ => Turn::new().call("page", json!({ "number": calls })),
        }
    });
    let kid = AgentSpec::new("kid", "Counts");
    let harness = harness(model).with_workspace(ws.path()).with_subagent(kid).with_tool(long_page());
    let harness = harness.with_compaction(windows(4_000)).build().unwrap();
    let last = harness.stream_events("Fill it in").reply().await.unwrap().text();
    assert!(last.contains("Use pdftk, and nothing else."), "{last}");
    assert!(last.contains("Your background tasks:\n- task_id: task-1"), "{last}");
    assert!(last.contains("Your subagents:") && last.contains("Fill it in"), "{last}");
}

/// A person who asks for a compaction has the answer to the last request, however long it is.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_answered_is_summarized_when_a_person_asks() {
    let (model, _) = Small::new(100_000, |request| {
        Turn::new().text(if summarizes(request) { "A long text was read." } else { "It is long." })
    });
    let harness = harness(model).build().unwrap();
    let session = harness.session("s");
    read(session.run("word ".repeat(20_000)).unwrap()).await;
    read(session.compact(RunOptions::new()).unwrap()).await;
    let size: usize = session.history().iter().map(|message| message.text().len()).sum();
    assert!(size < 10_000, "{size}");
}
