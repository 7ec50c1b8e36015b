//! The text of each reason.

use super::*;

#[test]
fn each_reason_says_who_and_what() {
    #[track_caller]
    fn check(reason: &CancelReason, outcome: Outcome, expected: &str) {
        let Failure { code, message, .. } = reason.into();
        assert_eq!((reason.outcome(), format!("{code}: {message}")), (outcome, expected.to_owned()));
    }
    use CancelReason::*;
    let cancelled = |reason: CancelReason, expected: &str| check(&reason, Outcome::Cancelled, expected);
    cancelled(User { how: None }, "cancelled_by_user: cancelled by the user");
    cancelled(CancelReason::user("Ctrl-C"), "cancelled_by_user: cancelled by the user (Ctrl-C)");
    cancelled(Signal { name: "SIGTERM".into() }, "cancelled_by_signal: cancelled by SIGTERM");
    let by = CancelReason::agent("main");
    cancelled(
        Subtree { agent: "lead".into(), by: by.clone() },
        "agent_cancelled: cancelled by agent `main` (agent `lead` and all below it)",
    );
    cancelled(
        Task { task: "t-1".parse().unwrap(), by },
        "task_cancelled: cancelled by agent `main` (task `t-1`)",
    );
    cancelled(RunEnded, "run_ended: cancelled by the end of the run");
    cancelled(Shutdown, "shutdown: cancelled by the shutdown of the harness");
    cancelled(Dropped, "dropped: the stream was dropped before the agent had ended");
    let time = |millis| Timeout { after: Duration::from_millis(millis) };
    check(&time(30_000), Outcome::Timeout, "timeout: timed out after 30 s");
    check(&time(600_000), Outcome::Timeout, "timeout: timed out after 10 min");
    check(&time(90_000), Outcome::Timeout, "timeout: timed out after 90 s");
    check(&time(1500), Outcome::Timeout, "timeout: timed out after 1.5 s");
    check(&time(20), Outcome::Timeout, "timeout: timed out after 20 ms");
    let silence = Silence { lasted: Duration::from_secs(60) };
    check(&silence, Outcome::Timeout, "timeout: timed out: no event for 1 min");
}

#[test]
fn a_time_limit_is_of_one_agent_alone() {
    let timeout = CancelReason::Timeout { after: Duration::from_secs(2) };
    let below = timeout.below(&"main".into());
    assert_eq!(below.outcome(), Outcome::Cancelled);
    assert_eq!(below.to_string(), "cancelled with agent `main`: timed out after 2 s");
    assert_eq!(below.clone().below(&"lead".into()), below);
    let user = CancelReason::user("Ctrl-C");
    assert_eq!(user.clone().below(&"main".into()), user);
}
