//! An MCP server for `tests/it/mcp.rs`, built with the official SDK: what it can do beside
//! answering is fail. The first argument names a file to which it appends what happens to it.
#![expect(clippy::unwrap_used, reason = "a test server says what is wrong by failing")]
#![expect(clippy::print_stderr, reason = "servers do")]

use std::{
    fs::OpenOptions,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
        ToolAnnotations,
    },
    service::RequestContext,
    transport::stdio,
};
use serde_json::{Map, Value, json};

struct Server {
    log: String,
    has_more: AtomicBool,
}

impl Server {
    fn note(&self, what: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        writeln!(file, "{what}").unwrap();
    }

    fn tools(&self) -> Vec<Tool> {
        let tool = |name: &'static str, description: &'static str, properties: Value| {
            let schema = json!({"type": "object", "properties": properties});
            Tool::new(name, description, schema.as_object().cloned().unwrap())
        };
        let mut tools = vec![
            tool("echo", "Says it again", json!({"text": {"type": "string"}}))
                .with_annotations(ToolAnnotations::new().read_only(true)),
            tool("env", "Names the variables it knows", json!({})),
            tool("count", "Counts, slowly", json!({"to": {"type": "integer"}})),
            tool("hang", "Never answers", json!({})),
            tool("die", "Ends the server", json!({})),
            tool("grow", "Brings another tool", json!({})),
            tool("fail", "Fails", json!({"how": {"type": "string"}})),
            Tool::new("broken", "Has no schema", json!({"type": 7}).as_object().cloned().unwrap()),
        ];
        if self.has_more.load(Ordering::SeqCst) {
            tools.push(tool("more", "Was not there before", json!({})));
        }
        tools
    }

    async fn count(&self, to: u64, pause: u64, cx: &RequestContext<RoleServer>) {
        let Some(token) = cx.meta.get_progress_token() else { return };
        for number in 1..=to {
            let said = ProgressNotificationParam::new(token.clone(), number as f64).with_total(to as f64);
            cx.peer.notify_progress(said.with_message(format!("at {number}"))).await.unwrap();
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.note("list");
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.note(&format!("call {}", call.name));
        let arguments = call.arguments.unwrap_or_default();
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let answer = match &*call.name {
            "echo" => text("text"),
            "env" => names(),
            "count" => {
                let number = |name: &str, or: u64| arguments.get(name).and_then(Value::as_u64).unwrap_or(or);
                self.count(number("to", 3), number("pause", 0), &cx).await;
                "counted".to_owned()
            }
            "hang" => {
                cx.ct.cancelled().await;
                self.note("cancelled");
                return Err(ErrorData::internal_error("cancelled", None));
            }
            "die" => {
                eprintln!("the end is near");
                std::process::exit(3);
            }
            "grow" => {
                self.has_more.store(true, Ordering::SeqCst);
                cx.peer.notify_tool_list_changed().await.unwrap();
                "grown".to_owned()
            }
            "fail" if text("how") == "protocol" => {
                return Err(ErrorData::invalid_params("no such city", None));
            }
            "fail" => return Ok(CallToolResult::error(vec![ContentBlock::text("no such city")]).into()),
            "more" => "more".to_owned(),
            other => return Err(ErrorData::invalid_params(format!("unknown tool {other}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(answer)]).into())
    }
}

fn names() -> String {
    let named: Map<_, _> = std::env::vars().map(|(name, value)| (name, Value::String(value))).collect();
    Value::Object(named).to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let log = std::env::args().nth(1).expect("the first argument is a file");
    let server = Arc::new(Server { log, has_more: AtomicBool::new(false) });
    server.note(&format!("start {}", std::process::id()));
    if std::env::args().any(|argument| argument == "--silent") {
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    if std::env::args().any(|argument| argument == "--broken") {
        eprintln!("my token is {}", std::env::var("TOKEN").unwrap_or_default());
        std::process::exit(4);
    }
    let service = Arc::clone(&server).serve(stdio()).await.unwrap();
    service.waiting().await.unwrap();
    if std::env::args().any(|argument| argument == "--stubborn") {
        server.note("ignores its end");
        std::thread::sleep(Duration::from_secs(600));
    }
    server.note("end");
    // A read of stdin that goes on would hold the process.
    std::process::exit(0);
}
