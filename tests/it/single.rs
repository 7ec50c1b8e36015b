//! One agent: text, thinking, tools, limits, failures.

use mainstem::{
    message::{ContentBlock, StopReason, Usage},
    model::{ModelDelta, scripted::Turn},
    prelude::*,
    react::RepetitionLimits,
};
use mainstem_testing::timeline;
use serde_json::json;

use crate::support::{OpenNow, harness, ms};

async fn run(turns: impl IntoIterator<Item = Turn>) -> String {
    let model = ScriptedModel::new().agent("main", turns);
    timeline(harness(model).build().unwrap().stream_events("go")).await
}

#[tokio::test(start_paused = true)]
async fn text_only() {
    insta::assert_snapshot!(run([Turn::new().pace(ms(10)).say("Hello, dear reader.")]).await, @r#"
     0 main AGENT_START main "go"
     0 main MODEL_CALL_START scripted #1
    10 main TEXT_BLOCK_START
    10 main TEXT_BLOCK_DELTA "Hello, dear reader." ×3
    30 main TEXT_BLOCK_END
    30 main MODEL_CALL_END stop
    30 main AGENT_RESULT "Hello, dear reader."
    30 main AGENT_END success 6/6 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn thinking_comes_before_text_and_keeps_its_signature() {
    let opaque = [("signature".to_owned(), json!("c2ln"))].into_iter().collect();
    let turn = Turn::new().think("Paris or Rome? ").think("Rome.").delta(ModelDelta::BlockEnd { opaque });
    let model = ScriptedModel::new().agent("main", [turn.text("Rome.").usage(Usage::new(20, 9))]);
    let session = harness(model).build().unwrap().session("s");
    insta::assert_snapshot!(timeline(session.run("go").unwrap()).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main THINKING_BLOCK_START
    0 main THINKING_BLOCK_DELTA "Paris or Rome? Rome." ×4
    0 main THINKING_BLOCK_END
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Rome."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Rome."
    0 main AGENT_END success 29/29 tok
    "#);
    let ContentBlock::Thinking { thinking, opaque } = &session.history()[1].content[0] else {
        panic!("no thinking")
    };
    assert_eq!((thinking.as_str(), &opaque["signature"]), ("Paris or Rome? Rome.", &json!("c2ln")));
}

#[tokio::test(start_paused = true)]
async fn one_tool() {
    let first = Turn::new().text("Let me see.").call("lookup", json!({ "word": "stem", "takes": 50 }));
    insta::assert_snapshot!(run([first, Turn::new().text("Seen.")]).await, @r#"
     0 main AGENT_START main "go"
     0 main MODEL_CALL_START scripted #1
     0 main TEXT_BLOCK_START
     0 main TEXT_BLOCK_DELTA "Let me see."
     0 main TEXT_BLOCK_END
     0 main TOOL_CALL_START lookup (call-1)
     0 main TOOL_CALL_DELTA "{\"word\":\"stem\",\"takes\":50}" (call-1)
     0 main TOOL_CALL_END lookup (call-1)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START lookup {"word":"stem","takes":50} (call-1)
     0 main TOOL_RESULT_TEXT_DELTA "stem " (call-1)
    50 main TOOL_RESULT_TEXT_DELTA "found" (call-1)
    50 main TOOL_RESULT_END lookup success (call-1)
    50 main MODEL_CALL_START scripted #2
    50 main TEXT_BLOCK_START
    50 main TEXT_BLOCK_DELTA "Seen."
    50 main TEXT_BLOCK_END
    50 main MODEL_CALL_END stop
    50 main AGENT_RESULT "Seen."
    50 main AGENT_END success 17/17 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn parallel_tools_end_as_they_finish_and_reach_the_model_in_call_order() {
    let first = Turn::new()
        .call("lookup", json!({ "word": "slow", "takes": 100 }))
        .call("lookup", json!({ "word": "fast", "takes": 10 }));
    let model = ScriptedModel::new().agent("main", [first, Turn::new().text("Done.")]);
    let harness = harness(model).build().unwrap();
    let session = harness.session("s");
    insta::assert_snapshot!(timeline(session.run("go").unwrap()).await, @r#"
      0 main AGENT_START main "go"
      0 main MODEL_CALL_START scripted #1
      0 main TOOL_CALL_START lookup (call-1)
      0 main TOOL_CALL_DELTA "{\"word\":\"slow\",\"takes\":100}" (call-1)
      0 main TOOL_CALL_END lookup (call-1)
      0 main TOOL_CALL_START lookup (call-2)
      0 main TOOL_CALL_DELTA "{\"word\":\"fast\",\"takes\":10}" (call-2)
      0 main TOOL_CALL_END lookup (call-2)
      0 main MODEL_CALL_END tool_calls
      0 main TOOL_RESULT_START lookup {"word":"slow","takes":100} (call-1)
      0 main TOOL_RESULT_TEXT_DELTA "slow " (call-1)
      0 main TOOL_RESULT_START lookup {"word":"fast","takes":10} (call-2)
      0 main TOOL_RESULT_TEXT_DELTA "fast " (call-2)
     10 main TOOL_RESULT_TEXT_DELTA "found" (call-2)
     10 main TOOL_RESULT_END lookup success (call-2)
    100 main TOOL_RESULT_TEXT_DELTA "found" (call-1)
    100 main TOOL_RESULT_END lookup success (call-1)
    100 main MODEL_CALL_START scripted #2
    100 main TEXT_BLOCK_START
    100 main TEXT_BLOCK_DELTA "Done."
    100 main TEXT_BLOCK_END
    100 main MODEL_CALL_END stop
    100 main AGENT_RESULT "Done."
    100 main AGENT_END success 18/18 tok
    "#);
    let results: Vec<_> = session.history()[2].tool_results().map(|result| result.text()).collect();
    assert_eq!(results, ["slow found", "fast found"]);
}

#[tokio::test(start_paused = true)]
async fn failures_of_tools_go_to_the_model() {
    let first = Turn::new()
        .call("lokup", json!({ "word": "a" }))
        .call("lookup", json!({ "wort": "a" }))
        .raw_call("lookup", r#"{"word": "a"#)
        .call("flaky", json!({ "how": "error" }))
        .call("flaky", json!({ "how": "panic" }));
    insta::assert_snapshot!(run([first, Turn::new().text("I give up.")]).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START lokup (call-1)
    0 main TOOL_CALL_DELTA "{\"word\":\"a\"}" (call-1)
    0 main TOOL_CALL_END lokup (call-1)
    0 main TOOL_CALL_START lookup (call-2)
    0 main TOOL_CALL_DELTA "{\"wort\":\"a\"}" (call-2)
    0 main TOOL_CALL_END lookup (call-2)
    0 main TOOL_CALL_START lookup (call-3)
    0 main TOOL_CALL_DELTA "{\"word\": \"a" (call-3)
    0 main TOOL_CALL_END lookup (call-3)
    0 main TOOL_CALL_START flaky (call-4)
    0 main TOOL_CALL_DELTA "{\"how\":\"error\"}" (call-4)
    0 main TOOL_CALL_END flaky (call-4)
    0 main TOOL_CALL_START flaky (call-5)
    0 main TOOL_CALL_DELTA "{\"how\":\"panic\"}" (call-5)
    0 main TOOL_CALL_END flaky (call-5)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START lokup {"word":"a"} (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "unknown tool \"lokup\"; known: agent_close, agent_fanout, agent_list, agent_send, "… (call-1)
    0 main TOOL_RESULT_END lokup error (call-1)
    0 main TOOL_RESULT_START lookup {"wort":"a"} (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "the arguments of lookup don't fit:\n- arguments: \"word\" is missing" (call-2)
    0 main TOOL_RESULT_END lookup error (call-2)
    0 main TOOL_RESULT_START lookup null (call-3)
    0 main TOOL_RESULT_TEXT_DELTA "the arguments of lookup are not JSON: EOF while parsing a string at line 1 colum"… (call-3)
    0 main TOOL_RESULT_END lookup error (call-3)
    0 main TOOL_RESULT_START flaky {"how":"error"} (call-4)
    0 main TOOL_RESULT_TEXT_DELTA "no luck" (call-4)
    0 main TOOL_RESULT_END flaky error (call-4)
    0 main TOOL_RESULT_START flaky {"how":"panic"} (call-5)
    0 main TOOL_RESULT_TEXT_DELTA "tool flaky panicked: assertion `left != right` failed: as asked\n  left: \"panic\"\n"… (call-5)
    0 main TOOL_RESULT_END flaky error (call-5)
    0 main MODEL_CALL_START scripted #2
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "I give up."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "I give up."
    0 main AGENT_END success 22/22 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn calls_without_ids_or_with_one_id_twice_are_told_apart() {
    let call = |slot, id: Option<&str>| {
        let start = ModelDelta::CallStart { slot, id: id.map(Into::into), name: "lookup".into() };
        (start, ModelDelta::CallArguments { slot, delta: json!({ "word": slot }).to_string() })
    };
    let turn = [call(0, Some("a")), call(1, Some("a")), call(2, None), call(3, Some(""))]
        .into_iter()
        .fold(Turn::new(), |turn, (start, arguments)| turn.delta(start).delta(arguments));
    let again = Turn::new().delta(call(0, Some("a")).0).text("never mind");
    insta::assert_snapshot!(run([turn, again, Turn::new().text("Done.")]).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START lookup (a)
    0 main TOOL_CALL_DELTA "{\"word\":0}" (a)
    0 main TOOL_CALL_START lookup (a~2)
    0 main TOOL_CALL_DELTA "{\"word\":1}" (a~2)
    0 main TOOL_CALL_START lookup (call-1)
    0 main TOOL_CALL_DELTA "{\"word\":2}" (call-1)
    0 main TOOL_CALL_START lookup (call-2)
    0 main TOOL_CALL_DELTA "{\"word\":3}" (call-2)
    0 main TOOL_CALL_END lookup (a)
    0 main TOOL_CALL_END lookup (a~2)
    0 main TOOL_CALL_END lookup (call-1)
    0 main TOOL_CALL_END lookup (call-2)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START lookup {"word":0} (a)
    0 main TOOL_RESULT_TEXT_DELTA "the arguments of lookup don't fit:\n- at /word: must be a string, got 0" (a)
    0 main TOOL_RESULT_END lookup error (a)
    0 main TOOL_RESULT_START lookup {"word":1} (a~2)
    0 main TOOL_RESULT_TEXT_DELTA "the arguments of lookup don't fit:\n- at /word: must be a string, got 1" (a~2)
    0 main TOOL_RESULT_END lookup error (a~2)
    0 main TOOL_RESULT_START lookup {"word":2} (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "the arguments of lookup don't fit:\n- at /word: must be a string, got 2" (call-1)
    0 main TOOL_RESULT_END lookup error (call-1)
    0 main TOOL_RESULT_START lookup {"word":3} (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "the arguments of lookup don't fit:\n- at /word: must be a string, got 3" (call-2)
    0 main TOOL_RESULT_END lookup error (call-2)
    0 main MODEL_CALL_START scripted #2
    0 main TOOL_CALL_START lookup (a~3)
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "never mind"
    0 main TEXT_BLOCK_END
    0 main TOOL_CALL_END lookup (a~3)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START lookup {} (a~3)
    0 main TOOL_RESULT_TEXT_DELTA "the arguments of lookup don't fit:\n- arguments: \"word\" is missing" (a~3)
    0 main TOOL_RESULT_END lookup error (a~3)
    0 main MODEL_CALL_START scripted #3
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 20/20 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_iterations_ends_with_a_last_call_without_tools() {
    let ask = || Turn::new().call("lookup", json!({ "word": "more" }));
    let model = ScriptedModel::new().agent("main", [ask(), ask(), Turn::new().text("That is all I have.")]);
    let harness = harness(model).with_max_iterations(2).build().unwrap();
    insta::assert_snapshot!(timeline(harness.stream_events("go")).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START lookup (call-1)
    0 main TOOL_CALL_DELTA "{\"word\":\"more\"}" (call-1)
    0 main TOOL_CALL_END lookup (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START lookup {"word":"more"} (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "more " (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "found" (call-1)
    0 main TOOL_RESULT_END lookup success (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TOOL_CALL_START lookup (call-2)
    0 main TOOL_CALL_DELTA "{\"word\":\"more\"}" (call-2)
    0 main TOOL_CALL_END lookup (call-2)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START lookup {"word":"more"} (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "more " (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "found" (call-2)
    0 main TOOL_RESULT_END lookup success (call-2)
    0 main EXCEED_MAX_ITERS 2/2
    0 main HINT_BLOCK max_iterations "<system-reminder>\nThis is your last reply: the limit of steps is reached and no "…
    0 main MODEL_CALL_START scripted #3
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "That is all I have."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "That is all I have."
    0 main AGENT_END max_iterations 62/62 tok
    "#);
    let error = harness.call("go").await.unwrap_err();
    assert!(
        matches!(error, RunError::Limit { answer: Some(answer), .. } if answer.text() == "That is all I have.")
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_reply_is_asked_for_again() {
    let turns = [Turn::new().thinking("Forty-two."), Turn::new().text("Forty-two.")];
    insta::assert_snapshot!(run(turns).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main THINKING_BLOCK_START
    0 main THINKING_BLOCK_DELTA "Forty-two."
    0 main THINKING_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main HINT_BLOCK empty_response "<system-reminder>\nYour last reply was empty. Write your answer as the content of"…
    0 main MODEL_CALL_START scripted #2
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Forty-two."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Forty-two."
    0 main AGENT_END success 40/40 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn replies_that_stay_empty_are_an_error() {
    let model =
        ScriptedModel::new().agent("main", [Turn::new(), Turn::new().text(" "), Turn::new(), Turn::new()]);
    let silent = harness(model).build().unwrap();
    let error = silent.call("go").await.unwrap_err();
    assert_eq!(error.to_string(), "the model gave an empty answer");
    let filtered = ScriptedModel::new().agent("main", [Turn::new().stop(StopReason::ContentFilter)]);
    let error = harness(filtered).build().unwrap().call("go").await.unwrap_err();
    assert_eq!(error.to_string(), "the service filtered the answer");
}

#[tokio::test(start_paused = true)]
async fn a_failing_model_ends_the_run_and_keeps_what_was_said() {
    let turn = Turn::new().text("Once upon a").call("lookup", json!({ "word": "time" })).cut();
    insta::assert_snapshot!(run([turn]).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Once upon a"
    0 main TEXT_BLOCK_END
    0 main TOOL_CALL_START lookup (call-1)
    0 main TOOL_CALL_DELTA "{\"word\":\"time\"}" (call-1)
    0 main TOOL_CALL_END lookup (call-1)
    0 main MODEL_CALL_END error
    0 main TOOL_RESULT_START lookup null (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "interrupted before it ended" (call-1)
    0 main TOOL_RESULT_END lookup interrupted (call-1)
    0 main AGENT_END error 0/0 tok (transport: the connection was cut)
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_model_ends_the_run() {
    insta::assert_snapshot!(run([Turn::new().text("Hm").panic("no model today")]).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Hm"
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END error
    0 main AGENT_END error 0/0 tok (panic: a panic in the agent: no model today)
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_session_remembers_its_turns() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("One."), Turn::new().text("Two.")]);
    let session = harness(model).build().unwrap().session("s");
    assert_eq!(session.run("first").unwrap().reply().await.unwrap().text(), "One.");
    assert_eq!(session.run("second").unwrap().reply().await.unwrap().text(), "Two.");
    let said: Vec<_> = session.history().iter().map(|message| message.text()).collect();
    assert_eq!(said, ["first", "One.", "second", "Two."]);
    assert_eq!(session.log().last_seq(), 16, "one sequence across runs");
}

#[tokio::test(start_paused = true)]
async fn exclusive_tools_run_alone() {
    let slow = || json!({ "word": "a", "takes": 10 });
    let first = Turn::new()
        .call("lookup", slow())
        .call("alone", json!({}))
        .call("lookup", slow())
        .call("lookup", slow());
    let model = ScriptedModel::new().agent("main", [first, Turn::new().text("Done.")]);
    let alone = tool_fn(
        "alone",
        "Needs the place for itself",
        |_, _: serde_json::Map<String, serde_json::Value>| async {
            tokio::time::sleep(ms(10)).await;
            Ok::<_, ToolError>("done")
        },
    );
    let run = harness(model).with_tool(alone.with_exclusive(true)).build().unwrap().stream_events("go");
    let work = run.kinds(["TOOL_RESULT_START", "TOOL_RESULT_END"]);
    let lines: Vec<_> =
        work.map(|event| format!("{} {}", event.at.as_micros() / 1000 % 1000, event.kind)).collect().await;
    insta::assert_snapshot!(lines.join("\n"), @r#"
    0 TOOL_RESULT_START lookup {"word":"a","takes":10} (call-1)
    10 TOOL_RESULT_END lookup success (call-1)
    10 TOOL_RESULT_START alone {} (call-2)
    20 TOOL_RESULT_END alone success (call-2)
    20 TOOL_RESULT_START lookup {"word":"a","takes":10} (call-3)
    20 TOOL_RESULT_START lookup {"word":"a","takes":10} (call-4)
    30 TOOL_RESULT_END lookup success (call-4)
    30 TOOL_RESULT_END lookup success (call-3)
    "#);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_goes_in_a_circle_is_told_and_then_ended() {
    let turns = (0..9).map(|_| Turn::new().call("lookup", json!({ "word": "time" })));
    let model = ScriptedModel::new().agent("main", turns);
    let limits = RepetitionLimits::new().with_told(2).with_ended(3);
    let run = harness(model).with_repetition_limits(limits).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await);
}
