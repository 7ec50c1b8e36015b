//! Agents with parts that need trust.

use mainstem_spec::parse;

use super::*;

fn specs() -> SpecSet {
    let mut specs = SpecSet::new();
    for (id, keys) in [
        ("here", ""),
        ("there", "url: https://example.org/agent\n"),
        ("seeks", "server_tools: web_search\n"),
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
    check("there", &["url"]);
    check("docs", &["mcp_servers.docs"]);
    check("seeks", &["server_tools"]);
    let (trusted, found) = trust.without_untrusted(&specs, &workspaces());
    assert_eq!(trusted.iter().map(|spec| &*spec.id).collect::<Vec<_>>(), ["docs", "here", "seeks"]);
    assert_eq!(trusted.get("seeks").unwrap().server_tools, Some(vec![]));
    assert_eq!(found.iter().map(Diagnostic::code).collect::<Vec<_>>(), [Code::Untrusted; 2]);
    assert!(found[1].is_about(&specs.get("there").unwrap().origin));
    assert!(found[0].to_string().contains("until they are trusted"), "{}", found[0]);
}

#[test]
fn a_part_is_asked_about_with_its_workspace() {
    let trust = Trust::new(|workspace, part| {
        workspace == Path::new("/work") && ["subagents/there.md", "subagents/seeks.md"].contains(&part.file())
    });
    let (trusted, found) = trust.without_untrusted(&specs(), &workspaces());
    assert_eq!((trusted.len(), found.len()), (4, 0));
}

#[test]
fn code_needs_no_trust() {
    let spec = AgentSpec::new("there", "d").with_url("https://example.org");
    assert_eq!(Trust::default().untrusted(&spec, &workspaces()), []);
}
