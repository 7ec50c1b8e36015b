//! Agent2Agent: the official clients in Python and JavaScript read our server, and servers of the
//! official SDK in Python are remote agents of ours.

mod random;
mod remote;

use std::time::Duration;

use mainstem::prelude::*;
use mainstem_server::Protocol;
use serde_json::json;

use crate::support::{Folder, Served};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A fleet whose root does what a message asks for.
fn fleet() -> Harness {
    let spawn = json!({ "agent_id": "helper", "task": "help" });
    let model = ScriptedModel::new()
        .agent_on(
            "main",
            "greet",
            [Turn::new().text("Hello ").text("there."), Turn::new().text("Hello again.")],
        )
        .agent_on("main", "delegate", [Turn::new().call("agent_spawn", spawn), Turn::new().text("Done.")])
        .agent_on("main", "slow", [Turn::new().text("first ").wait(ms(500)).text("second")])
        .agent_on("main", "hang", [Turn::new().text("I hang").hang()])
        .agent_on(
            "main",
            "ask",
            [Turn::new().call("shout", json!({ "word": "hey" })), Turn::new().text("So be it.")],
        )
        .agent_on("main", "fail", [Turn::new().text("I try").cut()])
        .agent("helper", [Turn::new().text("I help.")]);
    let shout = |_, given: serde_json::Map<String, serde_json::Value>| async move {
        Ok::<_, ToolError>(serde_json::Value::Object(given).to_string())
    };
    Harness::builder("main", model)
        .with_tool(tool_fn("shout", "Shouts", shout))
        .with_subagent(AgentSpec::new("helper", "Helps"))
        .with_permissions(RuleSet::default().with_pattern(Effect::Ask, "shout").unwrap())
        .build()
        .unwrap()
}

/// Runs a client over both bindings, which have to be the same to it.
async fn over_both_bindings(script: &str) -> Option<String> {
    let folder = Folder::find("a2a")?;
    let served = Served::start(&fleet(), &[Protocol::A2a]).await;
    let rpc = folder.run(script, &served.url).await;
    assert_eq!(folder.run_with(script, &served.url, &["HTTP+JSON"]).await, rpc);
    Some(rpc)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "a snapshot is as long as it is")]
async fn the_python_client_reads_our_server() {
    let Some(said) = over_both_bindings("client.py").await else { return };
    insta::assert_snapshot!(said, @r#"
    card Mainstem ['agents'] ['bearer']
    extended main ['main', 'general-purpose', 'helper']
    send
      task completed ['greet me'] ['Hello there.']
    stream
      task submitted ['greet me'] []
      status working
      artifact  'Hello '
      artifact + 'there.'
      artifact +. ''
      status completed
    again in its context
      task submitted ['greet me'] []
      status working
      artifact  'Hello again.'
      artifact +. ''
      status completed
      same context: True other task: True
    get completed 0 ['Hello there.']
    list [True] 2 True
    children, for those who ask
      task submitted ['delegate this'] []
      status working AGENT_START of main
      status working MODEL_CALL_START of main
      status working TOOL_CALL_START of main
      status working TOOL_CALL_DELTA of main
      status working TOOL_CALL_END of main
      status working MODEL_CALL_END of main
      status working TOOL_RESULT_START of main
      status working AGENT_START of helper
      status working MODEL_CALL_START of helper
      status working TEXT_BLOCK_START of helper
      status working TEXT_BLOCK_DELTA of helper
      status working TEXT_BLOCK_END of helper
      status working MODEL_CALL_END of helper
      status working AGENT_RESULT of helper
      status working AGENT_END of helper
      status working TOOL_RESULT_TEXT_DELTA of main
      status working TOOL_RESULT_END of main
      status working MODEL_CALL_START of main
      status working TEXT_BLOCK_START of main
      artifact  'Done.'
      artifact +. ''
      status working MODEL_CALL_END of main
      status working AGENT_RESULT of main
      status completed AGENT_END of main
    children, for others
      task submitted ['delegate this'] []
      status working
      artifact  'Done.'
      artifact +. ''
      status completed
    drop and subscribe
      task submitted ['be slow'] []
      status working
      artifact  'first '
      task working ['be slow'] ['first ']
      artifact + 'second'
      artifact +. ''
      status completed
      over: UnsupportedOperationError
    cancel
      task submitted ['hang now'] []
      status working
      artifact  'I hang'
      canceled
      cancel TaskNotCancelableError
      unknown TaskNotFoundError
      over UnsupportedOperationError
      empty InvalidParamsError
    yes
      task submitted ['ask me'] []
      status working
      status input_required 'main asks for approval of shout({"word":"hey"}): answer yes or no'
      task working ['ask me'] []
      artifact  'So be it.'
      artifact +. ''
      status completed
    no, as data
      task input_required ['ask me'] []
      ['agent', 'confirmId', 'kind', 'toolCalls'] shout {'word': 'hey'}
      task working ['ask me'] []
      artifact  'So be it.'
      artifact +. ''
      status completed
    failure
      task submitted ['fail now'] []
      status working
      artifact  'I try'
      artifact +. ''
      status failed 'the connection was cut'
    push
      task submitted ['greet me'] []
      status working
      artifact  'Hello '
      artifact + 'there.'
      artifact +. ''
      status completed
      [('t0ken', 'Bearer s3cret')]
      last TASK_STATE_COMPLETED [{'text': 'Hello there.'}]
      task submitted ['hang now'] []
      status working
      artifact  'I hang'
      made True 1
      left 0
      refused: InvalidParamsError
      refused: InvalidParamsError
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "a snapshot is as long as it is")]
async fn the_javascript_client_reads_our_server() {
    let Some(said) = over_both_bindings("client.mjs").await else { return };
    insta::assert_snapshot!(said, @r#"
    card main main,general-purpose,helper
    send
      completed Hello there.
    stream
      task submitted greet me []
      status working
      artifact  "Hello "
      artifact + "there."
      artifact +. ""
      status completed
    children, for those who ask
      task submitted delegate this []
      status working
      status working
      status working
      status working
      status working
      status working
      status working
      status working of helper
      status working of helper
      status working of helper
      status working of helper
      status working of helper
      status working of helper
      status working of helper
      status working of helper
      status working
      status working
      status working
      status working
      artifact  "Done."
      artifact +. ""
      status working
      status working
      status completed
    drop and subscribe
      task submitted be slow []
      status working
      artifact  "first "
      task working be slow [first ]
      artifact + "second"
      artifact +. ""
      status completed
    cancel
      task submitted hang now []
      status working
      artifact  "I hang"
      canceled
      cancel TaskNotCancelableError
      unknown TaskNotFoundError
    yes, as data
      task submitted ask me []
      status working
      status input_required
      task working ask me []
      artifact  "So be it."
      artifact +. ""
      status completed
    "#);
}
