//! Code around model calls and tool calls: its order, its changes, its own answers, and its
//! failures.

use std::{
    future::pending,
    sync::{Arc, Mutex},
};

use mainstem::{
    message::{Failure, StopReason},
    model::{ModelRequest, ModelStream, scripted::Turn},
    prelude::*,
    react::{AgentError, Answer, NextModel, NextTool, PendingCall},
};
use mainstem_testing::timeline;
use serde_json::json;

use crate::support::{Spawns, harness, ms};

/// What happened, in order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().join(" ")
    }
}

fn one_lookup() -> ScriptedModel {
    ScriptedModel::new()
        .agent("main", [Turn::new().call("lookup", json!({ "word": "rust" })), Turn::new().text("Done.")])
}

fn said(text: &str) -> ScriptedModel {
    ScriptedModel::new().agent("main", [Turn::new().text(text)])
}

/// A model that records its requests.
struct Noting<M>(M, Trace);

impl<M: Model> Model for Noting<M> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let tools: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        let system = request.system.as_deref().unwrap_or("-").lines().next().unwrap_or_default();
        self.1.note(format!("{}: {system} {:?} {}", request.agent, request.options.seed, tools.join(",")));
        self.0.stream(request)
    }
}

/// Records its entry and its exit.
struct Around(&'static str, Trace);

#[async_trait]
impl Middleware for Around {
    async fn on_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        let Self(name, trace) = self;
        trace.note(format!("{}:{name}(", cx.agent()));
        let answer = next.run(cx, request).await;
        trace.note(format!("){name}"));
        answer
    }

    async fn on_tool_call(
        &self,
        cx: &RunContext,
        call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let Self(name, trace) = self;
        trace.note(format!("{}:{name}[{}", cx.agent(), call.name));
        let output = next.run(cx, call).await;
        trace.note(format!("]{name}"));
        output
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_is_the_outermost_and_children_have_them_too() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().text("Hi")]);
    let trace = Trace::default();
    let run = harness(model)
        .with_middleware(Around("a", trace.clone()))
        .with_middleware(Around("b", trace.clone()))
        .with_subagent(AgentSpec::new("kid", "K"))
        .build()
        .unwrap()
        .stream_events("go");
    timeline(run).await;
    assert_eq!(
        trace.text(),
        "main:a( main:b( )b )a main:a[agent_spawn main:b[agent_spawn kid:a( kid:b( )b )a ]b ]a main:a( main:b( )b )a"
    );
}

/// Adds a tool and a section to the instructions, and changes each request and each lookup.
struct Edits;

#[async_trait]
impl Middleware for Edits {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(tool_fn("added", "Added", |_, (): ()| async { Ok::<_, ToolError>("") }))]
    }

    fn system_prompt(&self, cx: &RunContext) -> Option<String> {
        Some(format!("You are {}.", cx.agent()))
    }

    async fn on_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        Arc::make_mut(&mut request.options).seed = Some(7);
        next.run(cx, request).await
    }

    async fn on_tool_call(
        &self,
        cx: &RunContext,
        mut call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        if call.name.as_ref() == "lookup" {
            call.arguments = json!({ "word": "ferris" });
        }
        next.run(cx, call).await
    }
}

#[tokio::test(start_paused = true)]
async fn it_adds_tools_and_instructions_and_changes_requests_of_all_agents() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().text("Hi")]);
    let trace = Trace::default();
    let harness = Harness::builder("main", Noting(model, trace.clone()))
        .with_middleware(Edits)
        .with_subagent(AgentSpec::new("kid", "K").with_prompt("Be a kid."))
        .build()
        .unwrap();
    assert_eq!(harness.call("go").await.unwrap().text(), "Done.");
    let fleet = "agent_close,agent_fanout,agent_list,agent_send,agent_spawn,task_cancel,task_list,task_output,task_wait";
    assert_eq!(
        trace.text(),
        format!(
            "main: You are main. Some(7) added,{fleet} kid: Be a kid. Some(7) added main: You are main. Some(7) added,{fleet}"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_shows_the_arguments_that_were_executed() {
    let run = harness(one_lookup()).with_middleware(Edits).build().unwrap().stream_events("go");
    let work = run.kinds(["TOOL_CALL_DELTA", "TOOL_RESULT_START", "TOOL_RESULT_TEXT_DELTA"]);
    let lines: Vec<_> = work.map(|event| event.kind.to_string()).collect().await;
    insta::assert_snapshot!(lines.join("\n"), @r#"
    TOOL_CALL_DELTA "{\"word\":\"rust\"}" (call-1)
    TOOL_RESULT_START lookup {"word":"ferris"} (call-1)
    TOOL_RESULT_TEXT_DELTA "ferris " (call-1)
    TOOL_RESULT_TEXT_DELTA "found" (call-1)
    "#);
}

/// Answers tool calls itself.
struct Cache;

#[async_trait]
impl Middleware for Cache {
    async fn on_tool_call(
        &self,
        _: &RunContext,
        call: PendingCall,
        _: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        Ok(format!("{}: known", call.name).into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_may_be_answered_without_the_tool() {
    let run = harness(one_lookup()).with_middleware(Cache).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START lookup (call-1)
    0 main TOOL_CALL_DELTA "{\"word\":\"rust\"}" (call-1)
    0 main TOOL_CALL_END lookup (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START lookup {"word":"rust"} (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "lookup: known" (call-1)
    0 main TOOL_RESULT_END lookup success (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 8/8 tok
    "#);
}

/// Does everything twice.
struct Twice;

#[async_trait]
impl Middleware for Twice {
    async fn on_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        next.run(cx, request.clone()).await?;
        next.run(cx, request).await
    }

    async fn on_tool_call(
        &self,
        cx: &RunContext,
        call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        next.run(cx, call.clone()).await?;
        next.run(cx, call).await
    }
}

/// The calls of the discarded answer are closed; a result begins once, even if the tool runs twice.
#[tokio::test(start_paused = true)]
async fn next_may_be_called_twice() {
    let turns = [
        Turn::new().call("lookup", json!({ "word": "rust" })),
        Turn::new().text("unheard"),
        Turn::new().text("Done."),
    ];
    let model = ScriptedModel::new().agent("main", turns);
    let run = harness(model).with_middleware(Twice).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START lookup (call-1)
    0 main TOOL_CALL_DELTA "{\"word\":\"rust\"}" (call-1)
    0 main TOOL_CALL_END lookup (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START lookup null (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "interrupted before it ended" (call-1)
    0 main TOOL_RESULT_END lookup interrupted (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TOOL_CALL_START lookup (call-2)
    0 main TOOL_CALL_DELTA "{\"word\":\"rust\"}" (call-2)
    0 main TOOL_CALL_END lookup (call-2)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START lookup {"word":"rust"} (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "rust " (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "rust " (call-2)
    0 main TOOL_RESULT_TEXT_DELTA "found" (call-2)
    0 main TOOL_RESULT_END lookup success (call-2)
    0 main MODEL_CALL_START scripted #3
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main MODEL_CALL_START scripted #4
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 16/16 tok
    "#);
}

/// Replaces the model's text; the model need not be called.
struct Ghost {
    asks: bool,
}

#[async_trait]
impl Middleware for Ghost {
    async fn on_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        if self.asks {
            next.run(cx, request).await?;
        }
        Ok(Answer::new(Message::assistant("No comment.")))
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_its_own_is_said() {
    let run =
        harness(said("unheard")).with_middleware(Ghost { asks: false }).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START middleware #1
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "No comment."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "No comment."
    0 main AGENT_END success 0/0 tok
    "#);
    let run =
        harness(one_lookup()).with_middleware(Ghost { asks: true }).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await, @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START lookup (call-1)
    0 main TOOL_CALL_DELTA "{\"word\":\"rust\"}" (call-1)
    0 main TOOL_CALL_END lookup (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START lookup null (call-1)
    0 main TOOL_RESULT_TEXT_DELTA "interrupted before it ended" (call-1)
    0 main TOOL_RESULT_END lookup interrupted (call-1)
    0 main MODEL_CALL_START middleware #2
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "No comment."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0 main AGENT_RESULT "No comment."
    0 main AGENT_END success 5/5 tok
    "#);
}

/// Cancels a model call after a while, and calls again.
struct Impatient;

#[async_trait]
impl Middleware for Impatient {
    async fn on_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        match tokio::time::timeout(ms(50), next.run(cx, request.clone())).await {
            Ok(answer) => answer,
            Err(_) => next.run(cx, request).await,
        }
    }

    async fn on_tool_call(
        &self,
        cx: &RunContext,
        call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        match tokio::time::timeout(ms(50), next.run(cx, call)).await {
            Ok(output) => output,
            Err(_) => Err(ToolError::new("took too long")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_it_drops_half_way_is_closed() {
    let first = Turn::new().text("well").call("lookup", json!({ "word": "rust" })).wait(ms(60));
    let turns =
        [first, Turn::new().call("lookup", json!({ "word": "w", "takes": 60 })), Turn::new().text("Done.")];
    let model = ScriptedModel::new().agent("main", turns);
    let run = harness(model).with_middleware(Impatient).build().unwrap().stream_events("go");
    insta::assert_snapshot!(timeline(run).await, @r#"
      0 main AGENT_START main "go"
      0 main MODEL_CALL_START scripted #1
      0 main TEXT_BLOCK_START
      0 main TEXT_BLOCK_DELTA "well"
      0 main TEXT_BLOCK_END
      0 main TOOL_CALL_START lookup (call-1)
      0 main TOOL_CALL_DELTA "{\"word\":\"rust\"}" (call-1)
      0 main TOOL_CALL_END lookup (call-1)
     50 main MODEL_CALL_END cancelled
     50 main TOOL_RESULT_START lookup null (call-1)
     50 main TOOL_RESULT_TEXT_DELTA "interrupted before it ended" (call-1)
     50 main TOOL_RESULT_END lookup interrupted (call-1)
     50 main MODEL_CALL_START scripted #2
     50 main TEXT_BLOCK_START
     50 main TEXT_BLOCK_DELTA "well"
     50 main TEXT_BLOCK_END
     50 main TOOL_CALL_START lookup (call-2)
     50 main TOOL_CALL_DELTA "{\"word\":\"rust\"}" (call-2)
     50 main TOOL_CALL_END lookup (call-2)
    110 main MODEL_CALL_END tool_calls
    110 main TOOL_RESULT_START lookup {"word":"rust"} (call-2)
    110 main TOOL_RESULT_TEXT_DELTA "rust " (call-2)
    110 main TOOL_RESULT_TEXT_DELTA "found" (call-2)
    110 main TOOL_RESULT_END lookup success (call-2)
    110 main MODEL_CALL_START scripted #3
    110 main TEXT_BLOCK_START
    110 main TEXT_BLOCK_DELTA "Done."
    110 main TEXT_BLOCK_END
    110 main MODEL_CALL_END stop
    110 main AGENT_RESULT "Done."
    110 main AGENT_END success 11/11 tok
    "#);
}

/// Refuses, or panics, around the call that it is told.
struct Breaks(&'static str);

impl Breaks {
    fn at(&self, place: &str) {
        assert_ne!(self.0, place, "as asked");
    }
}

#[async_trait]
impl Middleware for Breaks {
    fn system_prompt(&self, cx: &RunContext) -> Option<String> {
        self.at(&format!("prompt of {}", cx.agent()));
        None
    }

    async fn on_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        if self.0 == format!("refusal to {}", cx.agent()) {
            return Err(AgentError::Refused(Failure::new("budget", "no tokens left")));
        }
        self.at(&format!("model of {}", cx.agent()));
        next.run(cx, request).await
    }

    async fn on_tool_call(
        &self,
        cx: &RunContext,
        call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        if self.0 == format!("refusal of {}", call.name) {
            return Err(ToolError::new("not today"));
        }
        self.at(&format!("tool {}", call.name));
        next.run(cx, call).await
    }
}

/// Returns how each agent ended, in the order of their ends.
async fn ends(middleware: impl Middleware) -> String {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().call("lookup", json!({ "word": "w" })), Turn::new().text("Hi")]);
    let kid = AgentSpec::new("kid", "K");
    let run =
        harness(model).with_middleware(middleware).with_subagent(kid).build().unwrap().stream_events("go");
    let events: Vec<_> = run.collect().await;
    mainstem_testing::laws(&events).unwrap();
    let ends = events.iter().filter_map(|event| match &event.kind {
        EventKind::AgentEnd { outcome, error, .. } => {
            let why = error.as_ref().map_or_else(String::new, |error| format!(" ({})", error.code));
            Some(format!("{} {}{why}", event.agent_label(), outcome.as_str()))
        }
        _ => None,
    });
    ends.collect::<Vec<_>>().join(", ")
}

#[tokio::test(start_paused = true)]
async fn errors_and_panics_end_one_agent_and_no_other() {
    assert_eq!(ends(Breaks("nothing")).await, "kid success, main success");
    assert_eq!(ends(Breaks("refusal to main")).await, "main error (budget)");
    assert_eq!(ends(Breaks("refusal to kid")).await, "kid error (budget), main success");
    assert_eq!(ends(Breaks("refusal of lookup")).await, "kid success, main success");
    assert_eq!(ends(Breaks("prompt of main")).await, "main error (panic)");
    assert_eq!(ends(Breaks("prompt of kid")).await, "kid error (panic), main success");
    assert_eq!(ends(Breaks("model of main")).await, "main error (panic)");
    assert_eq!(ends(Breaks("model of kid")).await, "kid error (panic), main success");
    assert_eq!(ends(Breaks("tool lookup")).await, "kid error (panic), main success");
    assert_eq!(ends(Breaks("tool agent_spawn")).await, "main error (panic)");
}

#[tokio::test(start_paused = true)]
async fn a_refused_tool_call_goes_to_the_model() {
    let run = harness(one_lookup()).with_middleware(Breaks("refusal of lookup")).build().unwrap();
    let results = run.stream_events("go").kinds(["TOOL_RESULT_TEXT_DELTA", "TOOL_RESULT_END"]);
    let lines: Vec<_> = results.map(|event| event.kind.to_string()).collect().await;
    assert_eq!(
        lines,
        [r#"TOOL_RESULT_TEXT_DELTA "not today" (call-1)"#, "TOOL_RESULT_END lookup error (call-1)"]
    );
}

/// Waits for 100 ms, or without end, before it continues.
struct Waits {
    forever: bool,
    for_tools: bool,
}

impl Waits {
    async fn wait(&self) {
        tokio::time::sleep(ms(100)).await;
        if self.forever {
            pending().await
        }
    }
}

#[async_trait]
impl Middleware for Waits {
    async fn on_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        if !self.for_tools {
            self.wait().await;
        }
        next.run(cx, request).await
    }

    async fn on_tool_call(
        &self,
        cx: &RunContext,
        call: PendingCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        if self.for_tools {
            self.wait().await;
        }
        next.run(cx, call).await
    }
}

/// Cancels a run after 50 ms; returns the tools that began, how it ended, and when.
async fn cancelled(middleware: Waits) -> String {
    let run = harness(one_lookup()).with_middleware(middleware).build().unwrap().stream_events("go");
    let handle = run.handle();
    let before = tokio::time::Instant::now();
    let (events, ()) = futures_util::join!(run.collect::<Vec<_>>(), async {
        tokio::time::sleep(ms(50)).await;
        handle.cancel();
    });
    mainstem_testing::laws(&events).unwrap();
    let words = events.iter().filter(|event| event.kind.to_string().contains("\"rust \"")).count();
    let EventKind::AgentEnd { outcome, .. } = &events[events.len() - 1].kind else { panic!("no ending") };
    format!("{words} words, {} after {} ms", outcome.as_str(), before.elapsed().as_millis())
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_runs_that_wait_in_a_middleware() {
    let waits = |forever, for_tools| Waits { forever, for_tools };
    assert_eq!(cancelled(waits(false, false)).await, "0 words, cancelled after 100 ms");
    assert_eq!(cancelled(waits(false, true)).await, "0 words, cancelled after 100 ms");
    assert_eq!(cancelled(waits(true, false)).await, "0 words, cancelled after 2050 ms");
    assert_eq!(cancelled(waits(true, true)).await, "0 words, cancelled after 2050 ms");
}

/// Waits after the model has answered.
struct Ponders;

#[async_trait]
impl Middleware for Ponders {
    async fn on_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        let answer = next.run(cx, request).await?;
        assert_eq!(answer.stop, StopReason::ToolCalls);
        cx.cancellation().token().cancel();
        Ok(answer)
    }
}

#[tokio::test(start_paused = true)]
async fn tools_do_not_begin_when_the_cancel_came_before_them() {
    let run = harness(one_lookup()).with_middleware(Ponders).build().unwrap().stream_events("go");
    let results = run.kinds(["TOOL_RESULT_TEXT_DELTA", "TOOL_RESULT_END", "AGENT_END"]);
    let lines: Vec<_> = results.map(|event| event.kind.to_string()).collect().await;
    insta::assert_snapshot!(lines.join("\n"), @r#"
    TOOL_RESULT_TEXT_DELTA "interrupted before it ended" (call-1)
    TOOL_RESULT_END lookup interrupted (call-1)
    AGENT_END cancelled 5/5 tok (cancelled_by_user: cancelled by the user)
    "#);
}
