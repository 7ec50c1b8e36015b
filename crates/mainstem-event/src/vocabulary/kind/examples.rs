//! One value of each kind, for tests, docs and wire files.

use mainstem_message::{Allowance, MessageId};
use serde_json::json;

use super::*;

impl EventKind {
    /// Returns one value of each kind, in the order of the table, and an unknown one at the end.
    pub fn examples() -> Vec<Self> {
        let mut all = lifecycle();
        all.extend(blocks());
        all.extend(tools());
        all.extend(people());
        all.extend(the_rest());
        all
    }
}

fn failure() -> Failure {
    Failure::new("rate_limited", "api.example.com: too many requests")
}

fn opaque(name: &str) -> Opaque {
    Opaque::from_iter([(name.to_owned(), json!("b64=="))])
}

fn call() -> ToolCall {
    ToolCall::new("call-1", "search", r#"{"query":"rust"}"#)
}

fn lifecycle() -> Vec<EventKind> {
    use EventKind::*;
    let usage = Usage::new(120, 30);
    vec![
        AgentStart {
            name: "reviewer".into(),
            role: Role::Assistant,
            input: vec![Arc::new(Message::user("review this"))],
            parent_tool_call_id: Some("call-1".into()),
            settings: None,
            spec_version: Some("5f0c3a9e1b7d2468".into()),
            spec: Some(Arc::new(json!({ "id": "reviewer", "description": "Reviews", "steps": 10 }))),
        },
        AgentResult {
            result: Arc::new(Message::assistant("Looks good.").with_id(MessageId::from_lossy("reply-1.0"))),
        },
        AgentEnd {
            outcome: Outcome::Error,
            error: Some(failure()),
            usage: Box::new(Rollup {
                own: usage,
                inclusive: usage + usage,
                own_cost: Some(36),
                inclusive_cost: Some(72),
            }),
            duration_ms: 1500,
        },
        EventKind::model_call_start("gpt-4o-mini", 1).with_context_window(128_000),
        ModelCallEnd {
            usage: Some(usage),
            stop_reason: StopReason::ToolCalls,
            duration_ms: 900,
            rate_limits: Some(Box::new(rate_limits())),
        },
        RateLimitWait { limit: RateLimit::Tokens, ahead: 2, wait_ms: Some(1500), refusal: Some(failure()) },
        RateLimitPassed { waited_ms: 2100 },
        ModelRetry {
            attempt: 1,
            wait_ms: 500,
            error: failure(),
            discarded: Discarded::new(vec![BlockId::from_lossy("b1")], vec![ToolCallId::new("call-1")]),
        },
        EventKind::model_fallback("gpt-4o", "gpt-4o-mini", failure()),
    ]
}

fn rate_limits() -> RateLimits {
    let mut limits = RateLimits::default();
    limits.tokens = Some(Allowance::new(29_000).with_limit(30_000).with_reset_ms(2000));
    limits
}

fn blocks() -> Vec<EventKind> {
    use EventKind::*;
    let id = || BlockId::from_lossy("b1");
    vec![
        TextBlockStart { block_id: id() },
        TextBlockDelta { block_id: id(), delta: "Hello".into() },
        TextBlockEnd { block_id: id(), opaque: Opaque::new(), discarded: false },
        ThinkingBlockStart { block_id: id() },
        ThinkingBlockDelta { block_id: id(), delta: "Let me see".into() },
        ThinkingBlockEnd { block_id: id(), opaque: opaque("signature"), discarded: false },
        DataBlockStart { block_id: id(), media_type: "image/png".into() },
        DataBlockDelta { block_id: id(), delta: "iVBORw0KGgo=".into() },
        DataBlockEnd { block_id: id(), opaque: Opaque::new(), discarded: false },
    ]
}

fn tools() -> Vec<EventKind> {
    use EventKind::*;
    let id = || ToolCallId::new("call-1");
    let name = || Arc::from("search");
    vec![
        ToolCallStart { tool_call_id: id(), tool_call_name: name() },
        ToolCallDelta { tool_call_id: id(), delta: r#"{"query":"#.into() },
        ToolCallEnd {
            tool_call_id: id(),
            tool_call_name: name(),
            opaque: opaque("thoughtSignature"),
            discarded: false,
        },
        ToolResultStart { tool_call_id: id(), tool_call_name: name(), input: json!({ "query": "rust" }) },
        ToolResultTextDelta { tool_call_id: id(), delta: "42 hits".into() },
        ToolResultDataDelta { tool_call_id: id(), data: Box::new(ContentBlock::text("more")) },
        ToolResultEnd {
            tool_call_id: id(),
            tool_call_name: name(),
            state: ToolState::Success,
            duration_ms: 12,
        },
    ]
}

fn people() -> Vec<EventKind> {
    use EventKind::*;
    let result = ToolResult {
        tool_call_id: "call-1".into(),
        name: "search".into(),
        content: vec![ContentBlock::text("42 hits")],
        state: ToolState::Success,
    };
    vec![
        RequireUserConfirm {
            confirm_id: ConfirmId::from_lossy("confirm-1"),
            tool_calls: vec![call()],
            rule: Some("shell(git push *)".into()),
        },
        UserConfirmResult {
            confirm_id: ConfirmId::from_lossy("confirm-1"),
            confirm_results: vec![
                ConfirmResult::denied(call(), "not now"),
                ConfirmResult::withdrawn(call(), "the agent was stopped"),
            ],
        },
        RequireExternalExecution { tool_calls: vec![call()] },
        ExternalExecutionResult { tool_results: vec![result] },
        AllToolsDenied { denied_tool_calls: vec![call()] },
        RunCancelled { error: Failure::new("cancelled", "cancelled by the user (over HTTP)") },
    ]
}

fn the_rest() -> Vec<EventKind> {
    use EventKind::*;
    vec![
        HintBlock {
            block_id: BlockId::from_lossy("b2"),
            hint_source: "task_delivery".into(),
            hint: "<system-reminder>…</system-reminder>".into(),
        },
        ExceedMaxIters { max_iters: 10, current_iter: 10 },
        StreamFallback { reason: "the server answered without a stream".into() },
        TaskUpdated {
            task_id: TaskId::from_lossy("task-1"),
            from: TaskStatus::Running,
            to: TaskStatus::Failed,
            error: Some(failure()),
        },
        MessageSent {
            agent_key: AgentKey::from_lossy("agent:reviewer:1"),
            message: Arc::new(Message::user("and the tests?")),
            mode: SendMode::Steer,
        },
        AgentClosed { agent_key: AgentKey::from_lossy("agent:reviewer:1") },
        PlanModeChanged { active: true },
        StateCheckpoint {
            agent_key: AgentKey::from_lossy("agent:reviewer:1"),
            messages: vec![Arc::new(Message::user("summary"))],
        },
        Gap {
            from_seq: 5,
            to_seq: 9,
            missed: 5,
            per_agent: BTreeMap::from([
                (AgentKey::from_lossy("agent:reviewer:1"), 3),
                (AgentKey::from_lossy("root"), 2),
            ]),
            reason: None,
        },
        Custom { name: "progress".into(), value: json!({ "percent": 40 }) },
        Unknown {
            name: "FROM_THE_FUTURE".into(),
            value: serde_json::Map::from_iter([("answer".to_owned(), json!(42))]),
        },
    ]
}
