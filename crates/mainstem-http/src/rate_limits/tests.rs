//! The headers of each service, and invalid ones.

use reqwest::header::HeaderName;

use super::*;

#[track_caller]
fn check(headers: &[(&'static str, &str)], expected: &[&str]) {
    let headers = headers.iter().map(|(n, v)| (HeaderName::from_static(n), v.parse().unwrap())).collect();
    let limits = rate_limits(&headers);
    let told = limits.iter().map(|(limit, allowance)| {
        let Allowance { remaining, limit: most, reset_ms, .. } = allowance;
        format!("{limit:?} {remaining}/{most:?} {reset_ms:?}")
    });
    assert_eq!(told.collect::<Vec<_>>(), expected, "{headers:?}");
}

#[test]
fn every_service_is_read() {
    check(&[], &[]);
    check(
        &[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ],
        &["Requests 59/Some(60) Some(1000)", "Tokens 149984/Some(150000) Some(360000)"],
    );
    let azure = [("x-ratelimit-remaining-requests", "9"), ("x-ratelimit-remaining-tokens", "99")];
    check(&azure, &["Requests 9/None None", "Tokens 99/None None"]);
    check(
        &[
            ("date", "Sun, 06 Nov 1994 08:49:30 GMT"),
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "1994-11-06T08:49:31Z"),
            ("anthropic-ratelimit-input-tokens-limit", "30000"),
            ("anthropic-ratelimit-input-tokens-remaining", "29000"),
            ("anthropic-ratelimit-input-tokens-reset", "1994-11-06T08:49:00Z"),
            ("anthropic-ratelimit-output-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-remaining", "29000"),
        ],
        &[
            "Requests 49/Some(50) Some(1000)",
            "InputTokens 29000/Some(30000) Some(0)",
            "OutputTokens 0/None None",
        ],
    );
    check(
        &[
            ("x-ratelimit-limit", "10"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1"),
            ("x-tokenlimit-limit", "5000"),
            ("x-tokenlimit-remaining", "4000"),
        ],
        &["Requests 0/Some(10) Some(1000)", "Tokens 4000/Some(5000) None"],
    );
}

#[test]
fn a_reset_can_be_a_time() {
    let check_reset = |reset: &str, expected: &str| {
        let date = ("date", "Sun, 06 Nov 1994 08:49:30 GMT");
        let reset = ("x-ratelimit-reset-tokens", reset);
        check(&[date, ("x-ratelimit-remaining-tokens", "0"), reset], &[expected]);
    };
    check_reset("784111785", "Tokens 0/None Some(784111785000)");
    check_reset("1994-11-06T08:49:37Z", "Tokens 0/None Some(7000)");
    let date = ("date", "Mon, 24 Nov 2025 10:00:00 GMT");
    for reset in ["1763978407", "1763978407000"] {
        check(
            &[date, ("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", reset)],
            &["Tokens 0/None Some(7000)"],
        );
        check(
            &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", reset)],
            &["Tokens 0/None None"],
        );
    }
}

#[test]
fn what_is_invalid_is_left_out() {
    for remaining in ["", "-1", "many", "1.5", "99999999999999999999"] {
        check(&[("x-ratelimit-remaining-requests", remaining)], &[]);
    }
    let left = ("x-ratelimit-remaining-tokens", "5");
    for reset in ["soon", "5x", "s", "-1s", "1994-11-06T08:49:31Z", "1e300s", "1s1", "é", "..s"] {
        check(
            &[left, ("x-ratelimit-reset-tokens", reset), ("x-ratelimit-limit-tokens", "?")],
            &["Tokens 5/None None"],
        );
    }
}

#[test]
fn durations_are_read_as_go_writes_them() {
    let check = |text: &str, ms: u64| assert_eq!(duration(text), Some(Duration::from_millis(ms)), "{text}");
    check("20ms", 20);
    check("1s", 1_000);
    check("7.66s", 7_660);
    check("6m0s", 360_000);
    check("2m59.5s", 179_500);
    check("1h2m3s", 3_723_000);
    check("1d", 86_400_000);
    check("0s", 0);
    check("33011.5", 33_011_500);
}

#[test]
fn an_exhausted_limit_says_how_long() {
    let check = |limits: &[(u64, Option<u64>)], expected: Option<u64>| {
        let mut all = RateLimits::default();
        let mut limits = limits.iter().map(|(left, reset)| Some(Allowance::new(*left).with_reset_ms(*reset)));
        (all.requests, all.tokens) = (limits.next().flatten(), limits.next().flatten());
        assert_eq!(exhausted_for(&all), expected.map(Duration::from_millis));
    };
    check(&[], None);
    check(&[(1, Some(5))], None);
    check(&[(0, None)], None);
    check(&[(0, Some(5)), (1, Some(9))], Some(5));
    check(&[(0, Some(5)), (0, Some(9))], Some(9));
    let mut limits = RateLimits::default();
    limits.requests = Some(Allowance::new(0).with_limit(200).with_reset_ms(86_400_000));
    assert_eq!(exhausted_for(&limits), Some(Duration::from_secs(432)));
}
