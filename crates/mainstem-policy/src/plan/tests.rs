//! Which tools run in plan mode.

use super::{PLAN_TOOLS, PlanMode};

#[test]
fn only_what_changes_nothing_runs_while_planning() {
    let check = |mode: PlanMode, tool: &str, is_read_only, runs| {
        assert_eq!(mode.check(tool, is_read_only).is_ok(), runs, "{mode:?} {tool}");
    };
    check(PlanMode::Off, "write_file", false, true);
    check(PlanMode::Off, "read_file", true, true);
    check(PlanMode::On, "read_file", true, true);
    check(PlanMode::On, "write_file", false, false);
    check(PlanMode::On, "shell", false, false);
    check(PlanMode::On, "plan_exit", false, true);
    check(PlanMode::On, "plan_exit_now", false, false);
    check(PlanMode::On, "agent_generate", false, false);
    check(PlanMode::On, "", false, false);
    let listed = "plan_exit agent_spawn agent_fanout agent_send agent_list agent_close task_output task_wait task_list task_cancel";
    assert_eq!(PLAN_TOOLS.join(" "), listed);
    for tool in PLAN_TOOLS {
        check(PlanMode::On, tool, false, true);
    }
}

#[test]
fn the_refusal_says_what_to_do() {
    let refusal = PlanMode::On.check("write_file", false).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "plan mode: write_file changes things; finish the plan and call plan_exit"
    );
    assert_eq!(refusal.tool, "write_file");
}

#[test]
fn is_off_unless_said() {
    assert_eq!(PlanMode::default(), PlanMode::Off);
    assert_eq!(serde_json::to_string(&PlanMode::On).unwrap(), r#""on""#);
}
