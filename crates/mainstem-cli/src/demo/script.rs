//! The script of the demo: what its agents write and call, and at which pace.

use std::{iter, time::Duration};

use mainstem::{model::scripted::Turn, prelude::ScriptedModel, provider};
use serde_json::json;

pub(super) fn model(name: &str, pace: f64) -> ScriptedModel {
    let play = Play(pace);
    ScriptedModel::named(name)
        .agent("main", play.main())
        .agent_on("reviewer", "security", play.security())
        .agent_on("reviewer", "background", play.promises())
        .agent("reviewer", play.correctness())
        .agent("tester", play.tester())
        .agent("runner", play.runner())
}

/// How often the root answers after its review, in a chat.
const AFTER: usize = 100;

/// A factor of all pauses.
#[derive(Clone, Copy)]
struct Play(f64);

impl Play {
    fn time(self, millis: u64) -> Duration {
        Duration::from_millis(millis).mul_f64(self.0)
    }

    /// A reply that begins after a delay, then streams word by word.
    fn turn(self, after: u64) -> Turn {
        Turn::new().wait(self.time(after)).pace(self.time(65))
    }

    fn main(self) -> impl Iterator<Item = Turn> {
        let after = format!("That was the demo. To talk with a model, set {}.", provider::variables());
        self.review().into_iter().chain(iter::repeat_with(move || self.turn(250).say(&after)).take(AFTER))
    }

    fn review(self) -> [Turn; 2] {
        let diff = "the diff in src/cart.rs and src/discount.rs";
        [
            self.turn(250)
                .say("Two reviewers and a tester run at the same time.")
                .call("agent_spawn", json!({
                    "agent_id": "reviewer", "label": "correctness", "task": format!("Review the correctness of {diff}."),
                }))
                .call("agent_spawn", json!({
                    "agent_id": "reviewer", "label": "security", "task": format!("Review the security of {diff}."),
                }))
                .call("agent_spawn", json!({
                    "agent_id": "tester", "label": "tests", "task": format!("Which tests does {diff} need?"),
                }))
                .call("agent_spawn", json!({
                    "agent_id": "reviewer", "label": "promises", "timeout_seconds": 0,
                    "task": "In the background: does the change keep what its own comments promise?",
                })),
            self.turn(500).say(
                "Don't merge: the total can panic, and an empty code is accepted.\n\n\
                 1. src/cart.rs:14 discounts over 100 % underflow → cap them (correctness, tests)\n\
                 2. src/cart.rs:18 every code begins with \"\" → compare whole codes (security)\n\
                 3. src/cart.rs:19 a code can be redeemed again → keep each once (security)",
            ),
        ]
    }

    fn correctness(self) -> [Turn; 3] {
        [
            self.turn(400)
                .think("The total is a subtraction of unsigned numbers, so the sum of the discounts matters.")
                .call("read_diff", json!({ "file": "src/cart.rs" })),
            self.turn(400)
                .say("Nothing keeps the discounts below the sum; how large can one be?")
                .call("read_diff", json!({ "file": "src/discount.rs" })),
            self.turn(400).say(
                "src/cart.rs:14 two discounts of 60 % make the total underflow and panic → cap them at the sum",
            ),
        ]
    }

    fn security(self) -> [Turn; 3] {
        [
            self.turn(500)
                .think("What does a stranger control? The code that is redeemed.")
                .call("read_diff", json!({ "file": "src/cart.rs" })),
            self.turn(500)
                .say("The code is compared by its beginning, and nothing is remembered. Is there a limit elsewhere?")
                .call("read_diff", json!({ "file": "src/discount.rs" })),
            self.turn(500).say(
                "src/cart.rs:18 an empty code redeems the first discount it finds → compare whole codes\n\
                 src/cart.rs:19 one code can be redeemed without end → keep each code once",
            ),
        ]
    }

    fn promises(self) -> [Turn; 2] {
        [
            self.turn(900).say("The comments first.").call("read_diff", json!({ "file": "src/discount.rs" })),
            self.turn(900)
                .say("No comment says which percents are valid, so the change violates none of them."),
        ]
    }

    fn tester(self) -> [Turn; 2] {
        let task = "Run the tests of the discounts: none, one, an unknown code, the same code twice.";
        [
            self.turn(300)
                .say("Four cases matter: no discount, one, an unknown code, the same code twice.")
                .call("agent_spawn", json!({ "agent_id": "runner", "task": task })),
            self.turn(300).say("Three pass; redeem_twice fails: the total underflows at src/cart.rs:14."),
        ]
    }

    fn runner(self) -> [Turn; 3] {
        [
            self.turn(300).call("run_tests", json!({ "filter": "coupon" })),
            self.turn(500)
                .say("They are not called that; all four, then.")
                .call("run_tests", json!({ "filter": "" })),
            self.turn(300)
                .say("redeem_twice failed with an overflow at src/cart.rs:14, the other three passed."),
        ]
    }
}
