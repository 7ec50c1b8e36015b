//! The text of the prompts.

use mainstem_model::ScriptedModel;
use mainstem_policy::Rules;
use mainstem_react::Agent;
use mainstem_spec::Mode;

use super::*;

#[test]
fn a_child_reads_its_own_prompt_and_what_it_is() {
    let spec = AgentSpec::new("reviewer", "Reviews");
    insta::assert_snapshot!(child_prompt(&spec.clone().with_prompt("\nYou review code.\n"), false), @"
    You review code.
    
    # You are a subagent
    Another agent gave you the task in the first message; no person reads along.
    - Do that task and nothing else, then stop.
    - Your last reply is all that the other agent gets of your work: write the result itself into it, complete and short.
    - If something is missing or fails, say what, and what you did instead; do not ask back.
    ");
    assert_eq!(child_prompt(&spec.clone().with_prompt(" \n"), false), CHILD);
    assert_eq!(child_prompt(&spec, false), CHILD);
    assert_eq!(child_prompt(&spec, true), format!("{CHILD}{ISOLATED}"));
    assert_eq!(
        child_prompt(&spec.with_workspace_mode(WorkspaceMode::Shared), true),
        format!("{CHILD}{SHARED}")
    );
}

#[test]
fn an_agent_reads_which_skills_there_are_and_not_too_much_of_them() {
    let section = |skills: &[Skill]| skills_section(skills.iter());
    assert_eq!(section(&[]), None);
    let pdf = Skill::new("pdf", "Fills in forms;\n  use it for PDF", "Use pdftk.");
    insta::assert_snapshot!(section(&[pdf]).unwrap(), @"
    # Skills
    Instructions for particular tasks. Before you do what one of them is about, read it with `load_skill`.
    - `pdf`: Fills in forms; use it for PDF
    ");
    let long = section(&[Skill::new("zip", "é".repeat(301), "")]).unwrap();
    assert!(long.ends_with(&format!("- `zip`: {}…", "é".repeat(300))), "{long}");
    let many: Vec<_> = (0..150).map(|index| Skill::new(format!("s{index:03}"), "d", "")).collect();
    let text = section(&many).unwrap();
    assert!(text.contains("- `s099`: d\n… and 50 more") && !text.contains("s100"), "{text}");
}

#[test]
fn a_parent_reads_whom_it_can_spawn() {
    let mut catalog = Catalog::default();
    for spec in [
        AgentSpec::new("tester", "Runs the tests"),
        AgentSpec::new("ghost", "Hidden").with_hidden(true),
        AgentSpec::new("boss", "Primary").with_mode(Mode::Primary),
        AgentSpec::new("reviewer", "Reviews a change.").with_workspace_mode(WorkspaceMode::Shared),
    ] {
        let agent = Agent::builder(&*spec.id, ScriptedModel::new()).build().unwrap();
        catalog.insert(spec, agent, Rules::new());
    }
    assert!(!fleet_section(&catalog, false).contains("director"));
    insta::assert_snapshot!(fleet_section(&catalog, true), @"
    # Subagents
    You can hand tasks to other agents. Each starts without your conversation, so put everything it needs into `task`.
    - `agent_spawn` starts one and returns its reply. Several calls in one turn run at once; so do the tasks of one `agent_fanout`.
    - `agent_send` asks a child that has answered something further; it still knows its conversation. Name it by `agent_key` or `label`.
    - `agent_list` shows your children.
    - With `timeout_seconds: 0` you do not wait: you go on, and are told when it has ended.
    Hand over what is self-contained or can run in parallel; do small things yourself. If a child fails, read why, then try differently or go on without it.
    An agent sees your files only if it is said to work in your directory; to any other give what it needs to know in `task`.

    Agents:
    - `reviewer`: Reviews a change. Works in your directory.
    - `tester`: Runs the tests
    ");
}
