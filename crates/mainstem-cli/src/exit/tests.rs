//! The exit code of each end of a run.

use mainstem::{
    message::Failure,
    model::{ErrorKind, ModelError},
    react::AgentError,
};

use super::*;

#[test]
fn each_way_to_end_has_its_code() {
    let check = |ended: Outcome, error: Option<AgentError>, a_child_failed, expected| {
        let error = error.as_ref().map(Failure::from);
        let view = RunView {
            id: "run-1".parse().unwrap(),
            session_id: "session-1".parse().unwrap(),
            status: ended.into(),
            first_seq: 1,
            created_at: mainstem_event::Timestamp::from_micros(0),
            resumes: None,
            reply: None,
            message: None,
            error,
            usage: None,
        };
        assert_eq!(of_end(Some(&view), a_child_failed), expected);
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
    check(
        Outcome::Cancelled,
        Some(AgentError::Cancelled(mainstem_event::CancelReason::RunEnded)),
        false,
        Exit::Failed,
    );
    assert_eq!(of_end(None, false), Exit::Failed);
}

#[test]
fn the_table_has_every_code() {
    let codes: Vec<_> =
        table().lines().map(|line| line.trim().split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(codes.join(" "), "0 1 2 3 4 5 6 124 129 130 141 143");
}
