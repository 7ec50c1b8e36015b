//! Codes, lines and JSON of findings.

use mainstem_model::ResolveError;
use mainstem_spec::parse;
use serde_json::json;

use super::*;

#[test]
fn a_finding_of_a_file_has_its_code() {
    let check = |text: &str, expected: &[(Code, Severity)]| {
        let found = match parse("a", text, Path::new("a.md")) {
            Ok(parsed) => parsed.warnings,
            Err(errors) => errors,
        };
        let found: Vec<_> = found.into_iter().map(Diagnostic::from).collect();
        let codes: Vec<_> = found.iter().map(|found| (found.code(), found.severity())).collect();
        assert_eq!(codes, expected, "{found:?}");
    };
    check("---\ndescription: d\n---\n", &[]);
    check("---\ndescription: d\ntemperture: 1\n---\n", &[(Code::UnknownKey, Severity::Warning)]);
    check("---\ndescription: a: b\n---\n", &[(Code::Interpreted, Severity::Warning)]);
    check("---\ndescription: d\nname: b\n---\n", &[(Code::Interpreted, Severity::Warning)]);
    check("---\ndescription: d\nsteps: many\n---\n", &[(Code::Invalid, Severity::Error)]);
    check("no front matter", &[(Code::Invalid, Severity::Error)]);
}

#[test]
fn a_problem_with_an_agent_has_its_code() {
    let id = || "a".to_owned();
    let check = |problem: CatalogError, code: Code, has_help: bool| {
        let found = Diagnostic::about_agent(&problem, &SpecSet::new());
        assert_eq!((found.code(), found.help().is_some()), (code, has_help), "{found}");
        assert_eq!(found.is_error(), !problem.is_warning());
        assert_eq!(found.message(), problem.to_string());
    };
    let unknown = ResolveError::Unknown { name: id(), known: Vec::new(), families: Vec::new() };
    check(CatalogError::Model { id: id(), source: unknown }, Code::UnknownModel, true);
    let tool = CatalogError::UnknownTool { id: id(), key: "tools", tool: id(), known: Vec::new() };
    check(tool, Code::UnknownTool, false);
    check(CatalogError::UnknownSkill { id: id(), skill: id(), known: Vec::new() }, Code::UnknownSkill, false);
    let server = CatalogError::UnknownServer { id: id(), server: id(), known: Vec::new() };
    check(server, Code::UnknownServer, false);
    let source = mainstem_subagent::SpawnError::NoFleet.into();
    check(CatalogError::AgentTool { id: id(), tool: id(), source }, Code::AgentTool, false);
    check(CatalogError::OnlySpawns { id: id(), reaches: Vec::new() }, Code::OnlySpawns, true);
    check(CatalogError::NoWorkspace { id: id() }, Code::Unbuildable, false);
}

#[test]
fn it_is_a_line_for_people_and_fields_for_programs() {
    let text = "---\ndescription: d\ntemperture: 1\n---\n";
    let found = parse("a", text, Path::new("a.md")).unwrap().warnings.remove(0);
    let found = Diagnostic::from(found);
    assert_eq!(
        found.to_string(),
        "a.md:3:1: warning: unknown key \"temperture\"; did you mean \"temperature\"?"
    );
    let expected = json!({
        "file": "a.md", "line": 3, "column": 1, "severity": "warning", "code": "unknown_key",
        "key": "temperture", "message": "unknown key \"temperture\"", "suggestion": "temperature", "help": null,
    });
    assert_eq!(serde_json::to_value(&found).unwrap(), expected);
    let server = Diagnostic::error(Code::Server, "server \"docs\" ended\u{1b}[2J").with_file("b.md");
    assert_eq!(server.to_string(), "b.md: error: server \"docs\" ended [2J");
    assert_eq!(server.clone().as_warning().severity(), Severity::Warning);
    assert_eq!((server.position(), server.suggestion(), server.key()), (None, None, None));
    assert!(server.help().unwrap().contains("by hand"));
}
