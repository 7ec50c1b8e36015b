//! When calls may be sent.

use mainstem_message::Allowance;

use super::*;

const CALL: Cost = Cost { input: 100, output: 20 };

/// What happens before the call that is checked, each at a second after the start.
enum Step {
    /// Calls are sent.
    Send(u32),
    /// The response to the oldest unanswered call begins, and reports limits.
    Answer(RateLimits),
    /// The oldest unanswered call is refused.
    Refuse(Option<u64>),
    /// The oldest call ends, with its usage.
    End(Option<Usage>),
    /// The oldest call fails before its response.
    Fail,
}
use Step::{Answer, End, Fail, Refuse, Send};

fn reported(
    limit: RateLimit,
    left: u64,
    of: impl Into<Option<u64>>,
    reset_ms: impl Into<Option<u64>>,
) -> RateLimits {
    let allowance = Some(Allowance::new(left).with_limit(of).with_reset_ms(reset_ms));
    let mut limits = RateLimits::default();
    match limit {
        RateLimit::Requests => limits.requests = allowance,
        RateLimit::Tokens => limits.tokens = allowance,
        RateLimit::InputTokens => limits.input_tokens = allowance,
        _ => limits.output_tokens = allowance,
    }
    limits
}

/// Checks what is decided about a call at a second, with waits in seconds.
#[track_caller]
fn check_with(policy: &RatePolicy, steps: &[(u64, Step)], at: u64, expected: &str) {
    let (start, second) = (Instant::now(), Duration::from_secs);
    let mut pace = Pace::new(*policy);
    for (at, step) in steps {
        let now = start + second(*at);
        let oldest = pace.unanswered.front().map_or(0, |one| one.call);
        match step {
            Send(calls) => (0..*calls).for_each(|_| _ = pace.send(CALL, now)),
            Answer(limits) => pace.answered(oldest, limits, now),
            Refuse(wait) => {
                pace.refused(oldest, CALL, wait.map(second), now);
                pace.end(oldest, CALL, None, now);
            }
            End(usage) => pace.end(oldest, CALL, *usage, now),
            Fail => pace.failed(oldest, CALL, now),
        }
    }
    let now = start + second(at);
    let verdict = match pace.check(CALL, now) {
        Verdict::Go => "go".to_owned(),
        Verdict::Fail(wait) => format!("fail {}", wait.as_secs()),
        Verdict::Wait(limit, until) => {
            format!("{limit:?} {:?}", until.map(|until| ((until - now).as_secs_f64() * 10.0).round() / 10.0))
        }
    };
    assert_eq!(verdict, expected);
}

#[track_caller]
fn check(steps: &[(u64, Step)], at: u64, expected: &str) {
    check_with(&RatePolicy::default(), steps, at, expected);
}

#[test]
fn reported_limits_hold_calls_back_until_there_is_room() {
    use RateLimit::{InputTokens, OutputTokens, Requests, Tokens};
    let after = |limits| [(0, Send(1)), (0, Answer(limits))];
    check(&[], 0, "go");
    check(&[(0, Send(1_000))], 0, "go");
    check(&after(reported(Requests, 1, 60, 59_000)), 0, "go");
    // A sixtieth of a minute's limit is available each second.
    check(&after(reported(Requests, 0, 60, 60_000)), 0, "Requests Some(1.0)");
    check(&after(reported(Requests, 0, 60, 60_000)), 1, "go");
    check(&after(reported(Tokens, 120, 6_000, 60_000)), 0, "go");
    check(&after(reported(Tokens, 0, 600, 60_000)), 0, "Tokens Some(12.0)");
    check(&after(reported(InputTokens, 0, 600, 60_000)), 0, "InputTokens Some(10.0)");
    check(&after(reported(OutputTokens, 0, 600, 60_000)), 0, "OutputTokens Some(2.0)");
    // Without the whole limit, or the time until it is available, it is assumed to be one of a
    // minute that is reset at its end.
    check(&after(reported(Tokens, 0, None, 20_000)), 0, "Tokens Some(20.0)");
    check(&after(reported(Tokens, 0, None, None)), 0, "Tokens Some(60.0)");
    // A call that needs more than the whole limit is sent when all of it is available.
    check(&after(reported(Tokens, 0, 50, 30_000)), 0, "Tokens Some(30.0)");
    check(&after(reported(Tokens, 0, 0, 30_000)), 0, "go");
    // A wait that is too long is left to the service.
    check(&after(reported(Requests, 0, 1, 121_000)), 0, "go");
    check(&after(reported(Requests, 0, 1, u64::MAX)), 0, "go");
    check(&after(reported(Requests, 0, u64::MAX - 1, u64::MAX)), 0, "go");
}

#[test]
fn calls_without_a_response_are_taken_into_account() {
    let limits = || reported(RateLimit::Tokens, 300, 600, 30_000);
    check(&[(0, Send(1)), (0, Answer(limits())), (0, Send(1))], 0, "go");
    check(&[(0, Send(1)), (0, Answer(limits())), (0, Send(2))], 0, "Tokens Some(6.0)");
    check(&[(0, Send(3)), (0, End(None)), (0, Answer(limits()))], 0, "go");
    // Those that were sent before the call that reported are in its report.
    let first = [(0, Send(3)), (0, End(None)), (0, End(None)), (0, Answer(limits()))];
    check(&first, 0, "go");
    // A limit that is nearly full, or full, has room for so many calls and then adds.
    let nearly = |left, reset| reported(RateLimit::Requests, left, 50, reset);
    check(&[(0, Send(1)), (0, Answer(nearly(49, 1_000))), (0, Send(48))], 0, "go");
    check(&[(0, Send(1)), (0, Answer(nearly(49, 1_000))), (0, Send(60))], 5, "Requests Some(7.0)");
    check(&[(0, Send(1)), (0, Answer(nearly(50, 0))), (0, Send(60))], 0, "Requests Some(13.2)");
    // After a minute, they are not.
    check(
        &[(0, Send(1)), (0, Answer(reported(RateLimit::Tokens, 300, 600, 3_600_000))), (0, Send(2))],
        61,
        "go",
    );
}

#[test]
fn after_a_refusal_calls_wait_and_then_go_one_by_one() {
    let none = RateLimits::default;
    check(&[(0, Send(5)), (0, Refuse(Some(2)))], 2, "Refusal None");
    check(&[(0, Send(4)), (0, Refuse(Some(2))), (1, End(None)), (1, End(None)), (1, End(None))], 2, "go");
    check(&[(0, Send(5)), (0, Refuse(Some(20)))], 0, "Refusal Some(20.0)");
    check(&[(0, Send(1)), (0, Refuse(None))], 0, "Refusal Some(0.3)");
    check(&[(0, Send(2)), (0, Refuse(Some(20))), (0, Refuse(Some(5)))], 0, "Refusal Some(20.0)");
    check(&[(0, Send(1)), (0, Refuse(Some(20)))], 20, "go");
    check(&[(0, Send(1)), (0, Refuse(Some(20))), (20, Send(1))], 20, "Refusal None");
    check(&[(0, Send(1)), (0, Refuse(Some(2))), (2, Send(1)), (3, Answer(none())), (3, Send(1))], 3, "go");
    check(
        &[(0, Send(1)), (0, Refuse(Some(2))), (2, Send(1)), (3, Answer(none())), (3, Send(2))],
        3,
        "Refusal None",
    );
    check(&[(0, Send(1)), (0, Refuse(Some(2))), (2, Send(1)), (3, End(None))], 3, "go");
    check(&[(0, Send(1)), (0, Refuse(Some(121)))], 0, "fail 121");
    check(&[(0, Send(1)), (0, Refuse(Some(121)))], 1, "Refusal Some(120.0)");
    check(&[(0, Send(1)), (0, Refuse(Some(u64::MAX)))], 0, "fail 86400");
    // From time to time, a call is sent nevertheless; if it succeeds, the pause ends.
    check(&[(0, Send(1)), (0, Refuse(Some(900)))], 119, "fail 781");
    check(&[(0, Send(1)), (0, Refuse(Some(900)))], 120, "go");
    check(&[(0, Send(1)), (0, Refuse(Some(900))), (120, Send(1)), (121, Answer(none()))], 121, "go");
    check(&[(0, Send(2)), (0, Refuse(Some(900))), (1, Answer(none()))], 1, "fail 899");
}

#[test]
fn the_policy_holds_calls_back() {
    let policy = RatePolicy { requests_per_minute: Some(2), ..RatePolicy::default() };
    check_with(&policy, &[(0, Send(1))], 0, "go");
    check_with(&policy, &[(0, Send(2))], 0, "Requests Some(30.0)");
    check_with(&policy, &[(0, Send(2))], 30, "go");
    check_with(&policy, &[(0, Send(2)), (30, Send(1))], 30, "Requests Some(30.0)");
    check_with(&policy, &[(0, Send(2)), (0, Fail)], 0, "Requests Some(30.0)");
    let policy = RatePolicy { tokens_per_minute: Some(600), ..RatePolicy::default() };
    check_with(&policy, &[(0, Send(4))], 0, "go");
    check_with(&policy, &[(0, Send(5))], 0, "Tokens Some(12.0)");
    // What a call used counts, instead of what was estimated.
    check_with(&policy, &[(0, Send(5)), (0, End(Some(Usage::new(1, 0))))], 0, "Tokens Some(0.1)");
    // A call without a response has used none; what another used is estimated.
    check_with(&policy, &[(0, Send(5)), (0, Fail)], 0, "go");
    check_with(&policy, &[(0, Send(5)), (0, End(None))], 0, "Tokens Some(12.0)");
    check_with(&policy, &[(0, Send(1)), (0, End(Some(Usage::new(600, 0))))], 0, "Tokens Some(12.0)");
    check_with(&policy, &[(0, Send(1)), (0, End(Some(Usage::new(u64::MAX, 0))))], 0, "Tokens Some(552.0)");
    let policy = RatePolicy { tokens_per_minute: Some(60), ..RatePolicy::default() };
    check_with(&policy, &[(0, Send(1))], 0, "Tokens Some(120.0)");
    // An estimate far above the limit counts as ten minutes, and that is given back.
    let policy = RatePolicy { tokens_per_minute: Some(10), ..RatePolicy::default() };
    check_with(&policy, &[(0, Send(1)), (0, End(Some(Usage::new(10, 1))))], 0, "Tokens Some(66.0)");
    check_with(&policy, &[(0, Send(1)), (0, End(None))], 0, "Tokens Some(600.0)");
    let policy = RatePolicy { requests_per_minute: Some(0), ..RatePolicy::default() };
    check_with(&policy, &[], 0, "go");
    let policy = RatePolicy { calls: Some(2), ..RatePolicy::default() };
    check_with(&policy, &[(0, Send(2))], 0, "Calls None");
    check_with(&policy, &[(0, Send(2)), (0, End(None))], 0, "go");
}

#[test]
fn what_answers_use_is_learned_within_bounds() {
    let mut pace = Pace::new(RatePolicy::default());
    let now = Instant::now();
    let mut usage = Usage::new(1_000, u64::MAX);
    usage.cache_read_tokens = u64::MAX;
    for _ in 0..100 {
        let call = pace.send(CALL, now);
        pace.end(call, CALL, Some(usage), now);
    }
    assert!(pace.typical_output() <= LARGEST_OUTPUT);
    let huge = Cost { input: u64::MAX, output: u64::MAX };
    (0..10).for_each(|_| _ = pace.send(huge, now));
    pace.answered(1, &reported(RateLimit::Tokens, 5, 10, 1_000), now);
    assert!(matches!(pace.check(CALL, now), Verdict::Wait(RateLimit::Tokens, Some(_))));
    // Anthropic does not count what is read from the cache.
    let mut pace = Pace::new(RatePolicy::default());
    (usage.output_tokens, usage.cache_read_tokens) = (1, 1_000);
    for _ in 0..100 {
        let call = pace.send(CALL, now);
        pace.end(call, CALL, Some(usage), now);
    }
    pace.answered(1, &reported(RateLimit::InputTokens, 5, 600, 60_000), now);
    assert_eq!(pace.check(CALL, now), Verdict::Go);
}
