//! The book's table of what each protocol gets, cell by cell: a run is encoded with the events of a
//! row and without them; what the cell names is in the difference.

use std::sync::Arc;

use mainstem::{
    encode::{
        Encoder, Fleet, LangGraph, LangGraphOptions, StreamMode,
        agent_protocol::{AgentProtocol, Detail},
        agui::{Agui, Children, Requested},
    },
    event::{Discarded, FleetState, Origin, Rollup, RunSettings, Timestamp},
    message::{ContentBlock, DataSource, Opaque, StopReason, StoredData, ToolCallId, ToolState},
    prelude::*,
};
use mainstem_a2a::{Framing, TaskFold, extension::Extension};
use serde_json::{Value, json};

const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/book/src/protocols.md");

/// What words of a cell mean in the frames of a column. `KIND` is the name of each kind of the row,
/// and `kind` the same in lower case.
const WORDS: [(usize, &str, &str); 17] = [
    (0, "custom", r#""CUSTOM","name":"mainstem.kind""#),
    (0, "with the ids", r#""discarded":{"blocks":["b1"]}"#),
    (0, "interrupt", r#""outcome":{"type":"interrupt""#),
    (1, "artifact", "artifactUpdate"),
    (1, "becomes empty", r#""parts":[{"text":""}]},"append":false"#),
    (1, "extension", r#"events/v1":{"type":"KIND""#),
    (2, "payload", r#""payload":"{\"type\":\"KIND"#),
    (2, "custom", r#""payload":"{\"type\":\"CUSTOM\",\"name\":\"mainstem.KIND"#),
    (2, "cancelled", r#""status":"cancelled""#),
    (3, "message chunks", "event: messages"),
    (3, "content block", r#"{"type":"image""#),
    (3, "human message", r#""type":"human""#),
    (3, "tool message", r#""type":"tool""#),
    (3, "removed", r#""type":"remove""#),
    (3, "chunk with usage", r#""usage_metadata":{"input_tokens":120"#),
    (4, "withheld", r#""withheld":"So.""#),
    (4, "number of characters", r#""characters":"#),
];

/// A row: the kinds, the agent that they are of, and a cell for each protocol.
#[derive(Debug)]
struct Row {
    kinds: Vec<String>,
    is_of_child: bool,
    takes_back: bool,
    cells: Vec<String>,
}

/// Returns the names in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

impl Row {
    fn read(line: &str) -> Self {
        let mut cells = line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned());
        let first = cells.next().unwrap();
        let unknown = first.contains("unknown kinds").then_some("FROM_THE_FUTURE");
        Self {
            kinds: quoted(&first).chain(unknown).map(str::to_owned).collect(),
            is_of_child: first.contains("of a child"),
            takes_back: first.contains("take an answer back"),
            cells: cells.collect(),
        }
    }

    fn has(&self, kind: &EventKind) -> bool {
        let is_it = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => kind.name().starts_with(prefix),
            None => kind.name() == pattern,
        };
        self.kinds.iter().any(is_it)
    }

    /// Returns the events of the row: the examples of its kinds, with the row's discarded blocks.
    fn events(&self) -> Vec<EventKind> {
        let taken = if self.takes_back { vec!["b1".parse().unwrap()] } else { Vec::new() };
        let mut events = examples(|kind| self.has(kind));
        for event in &mut events {
            if let EventKind::ModelRetry { discarded, .. } | EventKind::ModelFallback { discarded, .. } =
                event
            {
                *discarded = Discarded::new(taken.clone(), Vec::new());
            }
        }
        events
    }

    /// Returns whether an example is to come before the events of the row.
    fn needs(&self, kind: &EventKind) -> bool {
        let name = kind.name();
        let is_about =
            |words: &[&str]| self.kinds.iter().any(|kind| words.iter().any(|word| kind.contains(word)));
        (name.starts_with("TOOL_CALL_") && is_about(&["TOOL_RESULT", "REQUIRE", "_RESULT"]))
            || (name.starts_with("REQUIRE_") && is_about(&["USER_CONFIRM_RESULT"]))
    }
}

fn examples(is_it: impl Fn(&EventKind) -> bool) -> Vec<EventKind> {
    EventKind::examples().into_iter().filter(is_it).collect()
}

/// Returns a run of a leader and a child, one of which calls a model, with the events of a row in
/// that call or without them. Events have the same numbers in both. Without what begins a run there
/// is none.
fn run(row: &Row, is_child: bool, outcome: Outcome, with: bool) -> Vec<AgentEvent> {
    let has = |kind: &str| row.kinds.iter().any(|one| one == kind);
    let is_first = has("RUN_CANCELLED") || (has("AGENT_START") && !row.is_of_child);
    if is_first && !with {
        return Vec::new();
    }
    let start = EventKind::agent_start("n", Role::Assistant, vec![Arc::new(Message::user("go"))]);
    let end = EventKind::agent_end(outcome, Rollup::nothing(), 5);
    let result = EventKind::AgentResult { result: Arc::new(Message::assistant("So.")) };
    let is_start = |kind: &EventKind| matches!(kind.name(), "AGENT_START" | "MODEL_CALL_START");
    let (starts, others): (Vec<_>, Vec<_>) = row.events().into_iter().partition(is_start);
    let block = || "b1".parse().unwrap();
    let text = [
        EventKind::TextBlockStart { block_id: block() },
        EventKind::TextBlockDelta { block_id: block(), delta: "So.".into() },
        EventKind::TextBlockEnd { block_id: block(), opaque: Default::default(), discarded: false },
    ];

    let mut all = Vec::new();
    let mut add = |is_there: bool, of_child: bool, kinds: Vec<EventKind>| {
        all.extend(kinds.into_iter().map(|kind| (is_there, of_child, kind)));
    };
    if !is_first {
        add(true, false, vec![start.clone()]);
    }
    if is_child && !has("AGENT_START") {
        add(true, true, vec![start]);
    }
    add(with, is_child, starts);
    if !has("RUN_CANCELLED") {
        add(!has("MODEL_CALL_START"), is_child, vec![EventKind::model_call_start("m", 1)]);
        add(!has("TEXT_BLOCK_*"), is_child, text.into());
    }
    add(true, is_child, examples(|kind| row.needs(kind)));
    let others = others.into_iter().map(|kind| if kind.name() == "AGENT_END" { end.clone() } else { kind });
    add(with, is_child, others.collect());
    let is_over = |of_child| has("RUN_CANCELLED") || (has("AGENT_END") && row.is_of_child == of_child);
    add(is_child && !is_over(true), true, vec![end.clone()]);
    add(!is_over(false) && !has("AGENT_RESULT"), false, vec![result]);
    add(!is_over(false), false, vec![end]);
    let numbered = (1..).zip(all).filter(|(_, (is_there, ..))| *is_there);
    numbered.map(|(seq, (_, of_child, kind))| event(seq, of_child, kind)).collect()
}

fn event(seq: u64, of_child: bool, kind: EventKind) -> AgentEvent {
    let source = of_child.then(|| {
        let source = json!({
            "agentKey": "agent:kid:1", "agentId": "kid", "sessionId": "sub-kid", "parentSessionId": "s",
            "depth": 1, "path": "s/kid", "turn": 1, "parentToolCallId": "call-0", "streamId": 1,
        });
        Arc::new(serde_json::from_value(source).unwrap())
    });
    let reply = if of_child { "reply-kid" } else { "reply-root" };
    let mut origin = Origin::session("s".parse().unwrap(), Some("r".parse().unwrap()));
    let is_of_session = matches!(kind.name(), "RUN_CANCELLED" | "GAP");
    origin.reply_id = (!is_of_session).then(|| reply.parse().unwrap());
    origin.source = source;
    AgentEvent::new(seq, Timestamp::from_micros(seq * 1000), Arc::new(origin), kind)
}

/// Returns the encoder of a column; the detail is one of AgentScope's protocol.
fn encoder(column: usize, detail: Detail) -> Box<dyn Encoder> {
    match column {
        0 => {
            let requested = Requested {
                thread_id: "t".into(),
                run_id: "r".into(),
                parent_run_id: None,
                is_versioned: true,
                children: Children::Subagents,
                state: Value::Null,
                results: Default::default(),
            };
            Box::new(Agui::new(requested, FleetState::default()))
        }
        1 => {
            let fold = TaskFold::new("r", "s").with_extension(Some(Extension::default()));
            Box::new(fold.into_stream(Framing::Plain))
        }
        2 => Box::new(AgentProtocol::new("t").with_detail(detail)),
        3 => {
            let mut options = LangGraphOptions::new("r", "s", "main");
            options.modes = StreamMode::ALL.into_iter().collect();
            options.subgraphs = true;
            Box::new(LangGraph::new(options))
        }
        4 => Box::new(Fleet::new()),
        _ => panic!("there is no column {column}"),
    }
}

/// Returns the frames of a row's events: those that a run has with them and lacks without them, for
/// each outcome. The shared state of AG-UI changes with most kinds, and is not in the table.
fn frames(row: &Row, column: usize, is_child: bool, detail: Detail) -> String {
    let encoded = |outcome, with| {
        let (mut encoder, events) = (encoder(column, detail), run(row, is_child, outcome, with));
        if events.is_empty() {
            return String::new();
        }
        let mut bytes = encoder.begin().to_vec();
        events.iter().for_each(|event| bytes.extend(encoder.event(event)));
        // A run that waits for its user ends in AG-UI once nothing else happens.
        bytes.extend(encoder.keep_alive());
        bytes.extend(encoder.end());
        String::from_utf8(bytes).unwrap()
    };
    let of = |outcome| {
        let (with, without) = (encoded(outcome, true), encoded(outcome, false));
        let without: Vec<_> = without.split("\n\n").collect();
        let is_new = |frame: &&str| !without.contains(frame) && !frame.contains("STATE_DELTA");
        with.split("\n\n").filter(is_new).map(|frame| format!("{frame}\n")).collect::<String>()
    };
    [Outcome::Success, Outcome::Error, Outcome::Cancelled].map(of).concat()
}

/// Returns what the frames of a column have to contain for a part of a cell.
fn needles(column: usize, part: &str, kinds: &[EventKind]) -> Vec<String> {
    let names = quoted(part).flat_map(|name| {
        let (first, others) = name.split_once('/').unwrap_or((name, ""));
        let family = first.rsplit_once('_').map_or("", |(family, _)| family);
        let others = others.split('/').filter(|other| !other.is_empty());
        std::iter::once(first.to_owned()).chain(others.map(move |other| format!("{family}_{other}")))
    });
    let frame = |name: String| {
        let name = name.trim_end_matches('*').replace("<call>", "call-0");
        let is_event = name.chars().all(|c| c == '_' || c.is_ascii_uppercase());
        let is_mode = StreamMode::ALL.iter().any(|mode| mode.name() == name);
        match column {
            0 if is_event => format!(r#""type":"{name}"#),
            1 if is_event => format!("TASK_STATE_{name}"),
            2 => format!("event: {name}\n"),
            3 if is_mode || name == "end" || name == "error" => format!("event: {name}"),
            4 => format!("event: {name}\n"),
            _ => name,
        }
    };
    let words = WORDS.iter().filter(|(of, words, _)| *of == column && part.contains(words));
    let said = words.flat_map(|(_, _, needle)| {
        kinds
            .iter()
            .map(|kind| needle.replace("KIND", kind.name()).replace("kind", &kind.name().to_lowercase()))
    });
    names.map(frame).chain(said).collect()
}

/// Returns what is wrong with a part of a cell.
fn wrong(row: &Row, column: usize, part: &str) -> Option<String> {
    let is_child = row.is_of_child || part.contains("of children");
    let (part, detail) = match part.split_once(" (`") {
        Some((part, detail)) => (part, Detail::parse(Some(detail.trim_end_matches("`)")))),
        None => (part, Detail::Verbose),
    };
    let frames = frames(row, column, is_child, detail);
    let needles = needles(column, part, &row.events());
    let missing: Vec<_> = needles.iter().filter(|needle| !frames.contains(*needle)).collect();
    let is_right = if part == "–" { frames.is_empty() } else { !needles.is_empty() && missing.is_empty() };
    let kinds = row.kinds.join(", ");
    (!is_right)
        .then(|| format!("{kinds}, column {column}: {part:?} lacks {missing:?} of {needles:?} in\n{frames}"))
}

/// What a vendor requires back, the settings of a run and the declaration of an agent are for this
/// harness alone; a picture that is stored has an address where a protocol shows it.
#[test]
fn what_is_for_this_harness_alone_is_in_no_frame() {
    let block = || "b1".parse().unwrap();
    let opaque = || Opaque::from_iter([("signature".to_owned(), json!("kept-here"))]);
    let stored = StoredData::new("ab".repeat(32).parse().unwrap(), 5_000);
    let picture = ContentBlock::Data {
        media_type: "image/png".into(),
        source: DataSource::Stored(stored),
        opaque: opaque(),
    };
    let mut settings = RunSettings::default();
    settings.user = Some("kept-here".into());
    let input = Arc::new(Message::new(Role::User, vec![ContentBlock::text("go"), picture.clone()]));
    let thought = ContentBlock::Thinking { thinking: "Hm.".into(), opaque: opaque() };
    let call: ToolCallId = "call-1".into();
    let kinds = [
        EventKind::agent_start("n", Role::Assistant, vec![input])
            .with_settings(Arc::new(settings))
            .with_spec(Arc::new(json!({ "prompt": "kept-here" }))),
        EventKind::model_call_start("m", 1),
        EventKind::ThinkingBlockStart { block_id: block() },
        EventKind::ThinkingBlockEnd { block_id: block(), opaque: opaque(), discarded: false },
        EventKind::DataBlockStart { block_id: block(), media_type: "image/png".into() },
        EventKind::DataBlockEnd { block_id: block(), opaque: opaque(), discarded: false },
        EventKind::ToolCallStart { tool_call_id: call.clone(), tool_call_name: "t".into() },
        EventKind::ToolCallEnd {
            tool_call_id: call.clone(),
            tool_call_name: "t".into(),
            opaque: opaque(),
            discarded: false,
        },
        EventKind::model_call_end(StopReason::ToolCalls, 1),
        EventKind::tool_result_start(call.clone(), "t", json!({ "opaque": "of-a-tool" })),
        EventKind::ToolResultDataDelta { tool_call_id: call.clone(), data: Box::new(picture) },
        EventKind::tool_result_end(call, "t", ToolState::Success, 1),
        EventKind::AgentResult { result: Arc::new(Message::new(Role::Assistant, vec![thought])) },
        EventKind::agent_end(Outcome::Success, Rollup::nothing(), 5),
    ];
    // Under its extension, A2A has the events of `/v1`.
    for column in [0, 2, 3, 4] {
        let mut encoder = encoder(column, Detail::Verbose);
        let mut bytes = encoder.begin().to_vec();
        let events = (1..).zip(kinds.clone()).map(|(seq, kind)| event(seq, false, kind));
        events.for_each(|event| bytes.extend(encoder.event(&event)));
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains("kept-here"), "column {column}: {text}");
        assert_eq!(text.contains("of-a-tool"), column != 4, "column {column}: {text}");
        let addresses = text.matches(&format!("/v1/sessions/s/data/{}", "ab".repeat(32))).count();
        assert!(addresses >= [1, 0, 1, 2, 0][column], "column {column}: {text}");
    }
}

#[test]
fn what_the_book_says_of_each_kind_is_in_the_frames() {
    let text = std::fs::read_to_string(BOOK).unwrap();
    let (_, table) = text.split_once("| kind | AG-UI").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|')).map(Row::read);
    let of_row = |row: Row| {
        let cells = (0..).zip(&row.cells);
        let parts = cells.flat_map(|(column, cell)| cell.split("; ").map(move |part| (column, part)));
        parts.filter_map(|(column, part)| wrong(&row, column, part)).collect::<Vec<_>>()
    };
    let all: Vec<_> = rows.flat_map(of_row).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}
