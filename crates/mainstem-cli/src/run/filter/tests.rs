//! What the filters of the command line let through.

use std::sync::Arc;

use clap::Parser;
use mainstem_event::{AgentEvent, EventKind, EventSource, Origin, Timestamp};

use super::*;

fn of(path: &str) -> AgentEvent {
    let id = path.rsplit('/').next().unwrap();
    let source = (path != "s").then(|| {
        Arc::new(EventSource {
            agent_key: "k".parse().unwrap(),
            agent_id: id.into(),
            agent_name: None,
            label: None,
            title: None,
            session_id: "sub".parse().unwrap(),
            parent_session_id: "s".parse().unwrap(),
            depth: path.matches('/').count() as u16,
            path: path.into(),
            task_id: None,
            turn: 1,
            parent_tool_call_id: None,
            stream_id: 1,
        })
    });
    let kind = EventKind::Custom { name: String::new(), value: 1.into() };
    AgentEvent::new(
        1,
        Timestamp::default(),
        Origin { source, ..Origin::session("s".parse().unwrap(), None) }.into(),
        kind,
    )
}

fn check(flags: &str, expected: &str) {
    let line = format!("mainstem run {flags}");
    let Some(args::Command::Run(args)) = args::Cli::parse_from(line.split_whitespace()).command else {
        panic!()
    };
    let filter = filter(&args, "s");
    let passed = ["s", "s/a", "s/a/b", "s/ab"].into_iter().filter(|path| filter.matches(&of(path)));
    assert_eq!(passed.collect::<Vec<_>>().join(" "), expected, "{flags}");
}

#[test]
fn filters_combine() {
    check("", "s s/a s/a/b s/ab");
    check("--only-agent b", "s/a/b");
    check("--only-agent main", "s");
    check("--max-depth 0", "s");
    check("--max-depth 1", "s s/a s/ab");
    check("--under main", "s s/a s/a/b s/ab");
    check("--under main/a", "s/a s/a/b");
    check("--under a/", "s/a s/a/b");
    check("--under mainly", "");
    check("--under a --max-depth 1", "s/a");
}
