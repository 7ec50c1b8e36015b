//! Agents with parts that need trust.

use mainstem_spec::{McpServer, SpecSet, parse};
use serde_json::json;

use super::*;

fn specs() -> SpecSet {
    let mut specs = SpecSet::new();
    for (id, keys) in [
        ("here", ""),
        ("there", "url: https://example.org/agent\n"),
        ("docs", "mcp_servers:\n  docs: { command: docs-server }\n"),
    ] {
        let text = format!("---\ndescription: d\n{keys}---\n");
        let path = format!("/work/subagents/{id}.md");
        specs.insert(parse(id, &text, Path::new(&path)).unwrap().spec);
    }
    specs
}

fn workspaces() -> [PathBuf; 1] {
    ["/work".into()]
}

#[test]
fn nothing_is_trusted_by_default() {
    let (specs, trust) = (specs(), Trust::default());
    let check = |id: &str, expected: &[&str]| {
        let untrusted = trust.untrusted(specs.get(id).unwrap(), &workspaces());
        assert_eq!(untrusted.iter().map(Part::key).collect::<Vec<_>>(), expected, "{id}");
    };
    check("here", &[]);
    check("there", &[]);
    check("docs", &["mcp_servers.docs"]);
}

#[test]
fn a_part_is_asked_about_with_its_workspace() {
    let trust = Trust::new(|workspace, part| {
        workspace == Path::new("/work")
            && part.file() == "subagents/docs.md"
            && part.key() == "mcp_servers.docs"
    });
    assert_eq!(trust.untrusted(specs().get("docs").unwrap(), &workspaces()), []);
}

#[test]
fn code_needs_no_trust() {
    let mut spec = AgentSpec::new("there", "d");
    spec.mcp_servers = Some(vec![McpServer::declared("x", json!({ "command": "y" }))]);
    assert_eq!(Trust::default().untrusted(&spec, &workspaces()), []);
}
