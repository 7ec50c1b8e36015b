//! Specs built in code.

use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::SpecError;

fn agent() -> AgentSpec {
    AgentSpec::new("researcher", "Looks things up")
}

/// What [`AgentSpec::validate`] says, line by line.
fn report(spec: AgentSpec) -> String {
    let errors = spec.validate().err().unwrap_or_default();
    assert!(errors.iter().all(|error| error.is_error() && error.key.is_some()));
    errors.iter().map(|error| format!("{error}\n")).collect()
}

#[test]
fn a_sensible_spec_is_valid() {
    assert_eq!(agent().validate(), Ok(()));
    let full = agent()
        .with_prompt("You look things up.")
        .with_model("openai:gpt-4o")
        .with_tools(["search"])
        .with_steps(1)
        .with_temperature(2.0)
        .with_top_p(0.0)
        .with_max_tokens_total(1)
        .with_output_schema(json!({"type": "object"}));
    assert_eq!(full.validate(), Ok(()));
    assert_eq!(agent().with_url("http://[::1]:8080/a").with_header("x-a", "${A}").validate(), Ok(()));
    assert_eq!(agent().with_workspace_path("/anywhere/at/all").validate(), Ok(()));
}

#[test]
fn prompt_workspace_path_and_url_exclude_one_another() {
    let (url, path, prompt) = ("https://a.example", "agents/r", "You look things up.");
    assert_snapshot!(report(agent().with_url(url).with_prompt(prompt)), @r#"error: agent "researcher": url and prompt exclude one another: keep one of them"#);
    assert_snapshot!(report(agent().with_prompt(prompt).with_workspace_path(path)), @r#"error: agent "researcher": workspace.path and prompt exclude one another: keep one of them"#);
    assert_snapshot!(report(agent().with_workspace_path(path).with_url(url).with_prompt(prompt)), @r#"
    error: agent "researcher": url and workspace.path exclude one another: keep one of them
    error: agent "researcher": url and prompt exclude one another: keep one of them
    error: agent "researcher": workspace.path and prompt exclude one another: keep one of them
    "#);
}

#[test]
fn every_value_has_its_rule() {
    assert_snapshot!(report(AgentSpec::new("The Researcher", " ")), @r#"
    error: agent "The Researcher": invalid agent id "The Researcher": use a-z, 0-9, _ and -, starting with a letter or digit
    error: agent "The Researcher": the description is empty: say what the agent is for, the model chooses by it
    "#);
    assert_snapshot!(report(agent().with_thinking_budget(9).with_max_output_tokens(0)), @r#"
    error: agent "researcher": max_output_tokens must be at least 1
    error: agent "researcher": thinking_budget must be below max_output_tokens, which counts thinking: 9 is not below 0
    "#);
    assert_snapshot!(report(agent().with_steps(0).with_temperature(f64::NAN).with_top_p(1.5)), @r#"
    error: agent "researcher": steps must be at least 1
    error: agent "researcher": temperature must be in 0 to 2, not NaN
    error: agent "researcher": top_p must be in 0 to 1, not 1.5
    "#);
    assert_snapshot!(report(agent().with_max_tokens_total(0).with_output_schema(json!(true))), @r#"
    error: agent "researcher": max_tokens_total must be at least 1
    error: agent "researcher": output_schema must be a mapping, such as `type: object`
    "#);
    assert_snapshot!(report(agent().with_url("https://").with_header("", "secret").with_header("a", "b\r\nc: d")), @r#"
    error: agent "researcher": the url is not an address: it starts with https:// or http:// and a host
    error: agent "researcher": "" is not a header name
    error: agent "researcher": the value of header "a" has a control character
    "#);
}

#[test]
fn a_url_is_absolute_and_plain() {
    let check =
        |url: &str, valid: bool| assert_eq!(agent().with_url(url).validate().is_ok(), valid, "{url:?}");
    for url in ["https://a", "http://127.0.0.1:80/x", "http://[::1]/", "https://a.example/a@b"] {
        check(url, true);
    }
    for url in [
        "",
        "a.example",
        "/path",
        "ftp://a",
        "https://",
        "https:///a",
        "https://a b",
        "https://a\n",
        "file:///etc",
        "https://user@a.example",
        "https://user:password@a.example",
        "https://a/x?y=z",
        "https://a/x#t",
    ] {
        check(url, false);
    }
}

#[test]
fn roles_and_hiding_decide_who_may_use_it() {
    let check = |mode: Mode, hidden: bool, spawnable: bool, listed: bool, runnable: bool| {
        let spec = agent().with_mode(mode).with_hidden(hidden);
        assert_eq!(
            (spec.is_spawnable(), spec.is_listed(), spec.is_runnable()),
            (spawnable, listed, runnable),
            "{mode:?}, hidden: {hidden}"
        );
    };
    check(Mode::All, false, true, true, true);
    check(Mode::Subagent, false, true, true, false);
    check(Mode::Primary, false, false, true, true);
    check(Mode::All, true, false, false, true);
    check(Mode::Primary, true, false, false, true);
}

#[test]
fn a_builder_replaces_lists_and_adds_rules() {
    let spec = agent()
        .with_tools(["a"])
        .with_tools(vec!["b".to_owned()])
        .with_permission("a", Permission::Deny)
        .with_permission("b", Permission::Ask)
        .with_workspace_mode(WorkspaceMode::Shared);
    assert_eq!(spec.tools, Some(vec!["b".to_owned()]));
    assert_eq!(spec.permissions.len(), 2);
    assert_eq!(spec.workspace, Workspace { mode: WorkspaceMode::Shared, path: None });
    assert_eq!((spec.steps, spec.origin), (DEFAULT_STEPS, Origin::Program));
}

#[test]
fn specs_and_errors_cross_threads() {
    const fn sendable<T: Send + Sync + 'static>() {}
    sendable::<AgentSpec>();
    sendable::<SpecError>();
}
