//! Rounds in, verdicts out.

use mainstem_message::ToolState;

use super::*;

fn round(repetition: &mut Repetition, name: char, result: &str) -> Verdict {
    let calls = [ToolCall::new(format!("call-{}", repetition.rounds.len()), name.to_string(), "{}")];
    let result = ToolResult {
        tool_call_id: calls[0].id.clone(),
        name: name.to_string(),
        content: vec![ContentBlock::text(result)],
        state: ToolState::Success,
    };
    repetition.round(&calls, [&result].into_iter())
}

/// Checks the verdicts of rounds, each named by a letter: `.` goes on, `t` is told, `E` ends.
#[track_caller]
fn check(limits: RepetitionLimits, rounds: &str, expected: &str) {
    let mut repetition = Repetition::new(limits);
    let shown = rounds.chars().map(|name| match round(&mut repetition, name, "same") {
        Verdict::GoOn => '.',
        Verdict::Tell => 't',
        Verdict::End(_) => 'E',
    });
    assert_eq!(shown.collect::<String>(), expected, "{rounds}");
}

#[test]
fn an_agent_that_repeats_itself_is_told_and_then_ends() {
    let limits = RepetitionLimits::default().with_ended(6);
    check(RepetitionLimits::default(), "aaaaaaaaaa", "..t......E");
    check(limits, "aaaaaa", "..t..E");
    check(limits, "abcdefgh", "........");
    // Other rounds in between are progress.
    check(limits, "aabaabcaad", "..........");
    // Circles of two to four rounds.
    check(limits, "abababababab", ".....t.....E");
    check(limits, "abcabcabcabcabcabc", "........t........E");
    check(limits, "abcdabcdabcd", "...........t");
    check(limits, "abcdeabcdeabcde", "...............");
    // A way into the circle does not matter, and one that was left is told of again.
    check(limits, "xyzaaaaaa", ".....t..E");
    check(limits, "aaabaaa", "..t...t");
}

#[test]
fn the_numbers_can_be_set() {
    let limits = RepetitionLimits::default();
    check(limits.with_told(2).with_ended(3), "aaaa", ".tEE");
    check(limits.with_told(0).with_ended(6), "aaaaaa", ".....E");
    check(limits.with_ended(0), "aaaaaaaaaaaa", "..t.........");
    check(limits.with_longest(1), "ababababababab", "..............");
    check(RepetitionLimits::off(), "aaaaaaaaaaaa", "............");
}

#[test]
fn a_result_that_is_in_a_file_of_its_call_is_the_same() {
    let mut repetition = Repetition::new(RepetitionLimits::default());
    let verdicts = (0..10).map(|number| {
        round(
            &mut repetition,
            'a',
            &format!("[All of it is in the file \"artifacts/s/call-{number}.txt\".] 42"),
        )
    });
    assert_eq!(verdicts.last(), Some(Verdict::End(10)));
}

#[test]
fn another_result_is_progress() {
    let mut repetition = Repetition::new(RepetitionLimits::default());
    for n in 0..20 {
        assert_eq!(round(&mut repetition, 'a', &n.to_string()), Verdict::GoOn);
    }
}
