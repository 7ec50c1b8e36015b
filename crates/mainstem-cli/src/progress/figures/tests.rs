//! Each figure as text.

use super::*;

#[test]
fn figures_are_short() {
    assert_eq!(
        [0, 449, 59_999, 60_000, 3_599_000, 7_500_000].map(time),
        ["0.0s", "0.4s", "59.9s", "1m00s", "59m59s", "2h05m"]
    );
    assert_eq!([0, 12_900, 61_000, 3_723_000].map(clock), ["00:00", "00:12", "01:01", "1:02:03"]);
    assert_eq!(
        [0, 999, 1_000, 14_230, 999_949, 999_950, 1_500_000].map(tokens),
        ["0 tok", "999 tok", "1.0k tok", "14.2k tok", "999.9k tok", "1.0M tok", "1.5M tok"]
    );
    assert_eq!(
        [0, 1, 99, 100, 4_249, 99_999, 100_000, 1_270_000].map(cost),
        ["$0", "<$0.0001", "<$0.0001", "$0.0001", "$0.0042", "$0.1000", "$0.10", "$1.27"]
    );
    let waits = [
        (RateLimit::Tokens, Some(1_500), 2, " of tokens, 1.5s, behind 2 calls"),
        (RateLimit::Requests, None, 1, " of requests, behind 1 call"),
        (RateLimit::Refusal, Some(20_000), 0, ", 20.0s"),
    ];
    for (limit, wait, ahead, end) in waits {
        assert_eq!(rate_limit(limit, wait, ahead), format!("waits for the rate limit{end}"));
    }
    assert_eq!([0, 1, 2].map(agents), ["0 agents", "1 agent", "2 agents"]);
}
