//! One agent: text, thinking, tools, limits, failures.

use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_testing::timeline;
use serde_json::json;

use crate::support::{harness, ms};

async fn run(turns: impl IntoIterator<Item = Turn>) -> String {
    let model = ScriptedModel::new().agent("main", turns);
    timeline(harness(model).build().unwrap().stream_events("go")).await
}

#[tokio::test(start_paused = true)]
async fn text_only() {
    insta::assert_snapshot!(run([Turn::new().pace(ms(10)).say("Hello, dear reader.")]).await, @"");
}

#[tokio::test(start_paused = true)]
async fn one_tool() {
    let turns = [
        Turn::new().text("Let me see.").call("lookup", json!({ "word": "stem", "takes": 50 })),
        Turn::new().text("Seen."),
    ];
    insta::assert_snapshot!(run(turns).await, @"");
}
