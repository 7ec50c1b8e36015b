//! Problems with agents, and what becomes of the agents.

use std::sync::Arc;

use mainstem_model::{ErrorKind, ModelError, ResolveError, ScriptedModel};
use mainstem_spec::AgentSpec;
use mainstem_subagent::{AgentFactory, Factory as _};

use super::*;

fn id() -> String {
    "critic".to_owned()
}

fn no_model() -> CatalogError {
    let source =
        ResolveError::Unknown { name: "nowhere:x".to_owned(), known: Vec::new(), families: Vec::new() };
    CatalogError::Model { id: id(), source }
}

fn unknown_tool() -> CatalogError {
    CatalogError::UnknownTool { id: id(), key: "tools", tool: "hammer".to_owned(), known: Vec::new() }
}

fn unknown_skill() -> CatalogError {
    CatalogError::UnknownSkill { id: id(), skill: "pdf".to_owned(), known: Vec::new() }
}

#[test]
fn code_is_held_to_more_than_files() {
    let check = |problem: CatalogError, in_code: bool, has_last: bool, expected: Verdict| {
        assert_eq!(verdict(&problem, in_code, has_last), expected, "{problem} {in_code} {has_last}");
    };
    let (code, file) = (true, false);
    for has_last in [false, true] {
        check(no_model(), code, has_last, Verdict::Fatal);
        check(CatalogError::NoWorkspace { id: id() }, code, has_last, Verdict::Fatal);
        check(unknown_tool(), code, has_last, Verdict::Fatal);
        check(unknown_skill(), code, has_last, Verdict::Report);
        check(unknown_tool(), file, has_last, Verdict::Report);
        check(unknown_skill(), file, has_last, Verdict::Report);
        let only_spawns = CatalogError::OnlySpawns { id: id(), reaches: Vec::new() };
        check(only_spawns, file, has_last, Verdict::Report);
    }
    check(no_model(), file, true, Verdict::UseLast);
    check(no_model(), file, false, Verdict::LeaveOut);
    check(CatalogError::NoWorkspace { id: id() }, file, true, Verdict::UseLast);
}

fn spec(path: &str, prompt: &str) -> AgentSpec {
    AgentSpec::new("critic", "Criticises").with_prompt(prompt).with_origin(Origin::File(path.into()))
}

fn set(spec: AgentSpec) -> SpecSet {
    let mut specs = SpecSet::new();
    specs.insert(spec);
    specs
}

/// A catalog of one agent.
fn catalog(spec: AgentSpec) -> Catalog {
    let mut catalog = Catalog::default();
    catalog.keep(AgentFactory::new(Arc::new(ScriptedModel::new())).entry(spec).unwrap());
    catalog
}

#[test]
fn the_last_agent_of_the_same_file_stays() {
    let check = |last: Option<AgentSpec>, expected: Option<&str>, codes: &[Code]| {
        let (last, mut now) = (last.map(catalog), Catalog::default());
        let specs = set(spec("a/critic.md", "New."));
        let found = settle(vec![no_model()], &Inputs::default(), &specs, last.as_ref(), &mut now).unwrap();
        assert_eq!(found.iter().map(Diagnostic::code).collect::<Vec<_>>(), codes);
        assert_eq!(now.get("critic").map(|entry| &*entry.spec.prompt), expected);
    };
    check(None, None, &[Code::UnknownModel]);
    check(Some(spec("a/critic.md", "Old.")), Some("Old."), &[Code::UnknownModel, Code::Reverted]);
    // Another file of the same id is another agent.
    check(Some(spec("b/critic.md", "Old.")), None, &[Code::UnknownModel]);
    check(Some(AgentSpec::new("critic", "d")), None, &[Code::UnknownModel]);
}

#[test]
fn a_check_forgives_what_only_this_machine_lacks() {
    let error = ModelError::new(ErrorKind::InvalidRequest, "no key");
    let source = ResolveError::Provider { name: "openai:x".to_owned(), source: error };
    let no_key = CatalogError::Model { id: id(), source };
    let found = examine(&[no_key, no_model(), unknown_tool()], &SpecSet::new());
    let found: Vec<_> = found.iter().map(|found| (found.code(), found.is_error())).collect();
    let expected = [(Code::UnusableModel, false), (Code::UnknownModel, true), (Code::UnknownTool, false)];
    assert_eq!(found, expected);
}

#[test]
fn the_first_fatal_problem_ends_it() {
    let inputs = Inputs::default().with_specs([AgentSpec::new("critic", "d")]);
    let problems = vec![unknown_skill(), no_model(), unknown_tool()];
    let settled = settle(problems, &inputs, &SpecSet::new(), None, &mut Catalog::default());
    assert!(matches!(settled, Err(CatalogError::Model { .. })), "{settled:?}");
}
