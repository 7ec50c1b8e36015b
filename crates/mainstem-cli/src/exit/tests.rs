//! Which code a run comes to.

use mainstem::{
    message::Failure,
    model::{ErrorKind, ModelError},
    react::{Agent, AgentError},
};

use super::*;

/// An outcome, as a run that goes like this has it.
fn outcome(outcome: Outcome, error: Option<AgentError>) -> RunOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let agent = Agent::builder("main", crate::demo::model(0.0)).build().unwrap();
    let mut run = runtime.block_on(agent.call("x"));
    (run.outcome, run.error) = (outcome, error);
    run
}

#[test]
fn each_way_to_end_has_its_code() {
    let check = |ended, error, a_child_failed, expected| {
        assert_eq!(of_outcome(Some(&outcome(ended, error)), a_child_failed), expected);
    };
    let model = |kind| Some(AgentError::Model(ModelError::new(kind, "no")));
    check(Outcome::Success, None, false, Exit::Reply);
    check(Outcome::Success, None, true, Exit::ChildFailed);
    check(Outcome::MaxIterations, None, true, Exit::Limit);
    check(Outcome::Timeout, None, false, Exit::Limit);
    let refused = |code| Some(AgentError::Refused(Failure::new(code, "no")));
    check(Outcome::Error, refused("budget"), false, Exit::Limit);
    check(Outcome::Error, refused("policy"), false, Exit::Failed);
    check(Outcome::Error, Some(AgentError::EmptyReply), true, Exit::Failed);
    check(Outcome::Error, model(ErrorKind::Auth), false, Exit::Refused);
    check(Outcome::Error, model(ErrorKind::RateLimited), false, Exit::Refused);
    check(Outcome::Error, model(ErrorKind::Protocol), false, Exit::Failed);
    check(Outcome::Cancelled, Some(AgentError::Cancelled), false, Exit::Failed);
    assert_eq!(of_outcome(None, false), Exit::Failed);
}

#[test]
fn the_table_has_every_code() {
    let codes: Vec<_> =
        table().lines().map(|line| line.trim().split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(codes.join(" "), "0 1 2 3 4 5 6 124 130 141 143");
}
