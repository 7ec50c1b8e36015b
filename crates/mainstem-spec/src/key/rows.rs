//! One row a key.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Key, Text};
use crate::{
    Effort, OnLost, Protocol, ServerTool, WorkspaceMode,
    node::Value as Node,
    parse::obey,
    rules::{self, Verdict},
};

/// What most keys have in common.
const ROW: Key = Key {
    name: "",
    aliases: &[],
    form: "",
    default: "",
    about: "",
    only_ours: &[],
    text: Text::No,
    lists_names: false,
    read: |_, _| Ok(()),
    check: |_| Vec::new(),
    value: |_| Value::Null,
};

const WHOLE: &str = "whole number from 1";
const NAMES: &str = "list, or text with commas";
const FLAG: &str = "`true` or `false`";

pub(super) static ROWS: [Key; 28] = [
    Key {
        name: "name",
        form: "text",
        default: "the file's name",
        about: "The file's name again; if it differs, the file's name counts, with a warning.",
        text: Text::Plain,
        read: |reader, entry| reader.name(&entry.node),
        check: |spec| each([&*spec.id], rules::id),
        value: |spec| json!(spec.id),
        ..ROW
    },
    Key {
        name: "description",
        form: "text, required",
        about: "What the agent is for; a model decides by it whether to use the agent.",
        text: Text::Plain,
        read: |reader, entry| {
            let text = obey(&entry.node, entry.node.text()?, rules::description)?;
            reader.spec.description = text.trim().to_owned();
            Ok(())
        },
        check: |spec| each([&*spec.description], rules::description),
        value: |spec| json!(spec.description),
        ..ROW
    },
    Key {
        name: "model",
        form: "`provider:model`, or a registered name",
        default: "the parent's",
        about: "The model that the agent uses.",
        text: Text::Names,
        lists_names: true,
        read: |reader, entry| reader.model(&entry.node),
        value: |spec| json!(spec.model),
        ..ROW
    },
    Key {
        name: "steps",
        aliases: &["max_iters", "maxTurns"],
        form: WHOLE,
        default: "10",
        about: "The most model calls of one task.",
        only_ours: &["max_iters"],
        read: |reader, entry| {
            reader.spec.steps = obey(&entry.node, entry.node.whole()?, rules::steps)?;
            Ok(())
        },
        check: |spec| each([spec.steps], rules::steps),
        value: |spec| json!(spec.steps),
        ..ROW
    },
    Key {
        name: "temperature",
        form: "number from 0 to 2",
        default: "the parent's",
        about: "The sampling temperature.",
        read: |reader, entry| {
            reader.spec.temperature = Some(obey(&entry.node, entry.node.number()?, rules::temperature)?);
            Ok(())
        },
        check: |spec| each(spec.temperature, rules::temperature),
        value: |spec| json!(spec.temperature),
        ..ROW
    },
    Key {
        name: "top_p",
        form: "number from 0 to 1",
        default: "the parent's",
        about: "The threshold of nucleus sampling.",
        read: |reader, entry| {
            reader.spec.top_p = Some(obey(&entry.node, entry.node.number()?, rules::top_p)?);
            Ok(())
        },
        check: |spec| each(spec.top_p, rules::top_p),
        value: |spec| json!(spec.top_p),
        ..ROW
    },
    Key {
        name: "compact_at",
        form: "whole number from 10 to 100, or 0 for never",
        default: "the parent's",
        about: "The percentage of its model's context window above which its conversation is compacted.",
        read: |reader, entry| {
            reader.spec.compact_at = Some(obey(&entry.node, entry.node.whole()?, rules::compact_at)?);
            Ok(())
        },
        check: |spec| each(spec.compact_at, rules::compact_at),
        value: |spec| json!(spec.compact_at),
        ..ROW
    },
    Key {
        name: "effort",
        form: "`none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`",
        default: "the parent's",
        about: "How hard the model thinks.",
        read: |reader, entry| {
            reader.spec.effort = Some(entry.node.choice(&Effort::NAMES)?);
            Ok(())
        },
        value: |spec| json!(spec.effort),
        ..ROW
    },
    Key {
        name: "thinking_budget",
        form: "whole number",
        default: "the parent's",
        about: "The most tokens that the model thinks with in one answer, less than `max_output_tokens`; 0 for none.",
        only_ours: &["thinking_budget"],
        read: |reader, entry| {
            reader.spec.thinking_budget = Some(entry.node.whole()?);
            Ok(())
        },
        value: |spec| json!(spec.thinking_budget),
        ..ROW
    },
    Key {
        name: "max_output_tokens",
        form: WHOLE,
        default: "the parent's",
        about: "The most tokens of one answer, with the model's thinking.",
        only_ours: &["max_output_tokens"],
        read: |reader, entry| {
            let tokens = obey(&entry.node, entry.node.whole()?, rules::max_output_tokens)?;
            reader.spec.max_output_tokens = Some(tokens);
            Ok(())
        },
        check: |spec| each(spec.max_output_tokens, rules::max_output_tokens),
        value: |spec| json!(spec.max_output_tokens),
        ..ROW
    },
    Key {
        name: "server_tools",
        form: "`web_search` and `code_execution`, a list or with commas in between",
        default: "the settings'",
        about: "The tools that the model's vendor has and runs itself: OpenAI's responses, Anthropic and Gemini have both. `[]` is none. A rule that denies some of a tool's calls, or asks about them, leaves it out.",
        only_ours: &["server_tools"],
        read: |reader, entry| {
            reader.spec.server_tools = Some(entry.node.choices(&ServerTool::NAMES)?);
            Ok(())
        },
        value: |spec| json!(spec.server_tools),
        ..ROW
    },
    Key {
        name: "tools",
        form: NAMES,
        default: "all of the parent's",
        about: "The only tools of the agent; `*` stands for all that it inherits.",
        text: Text::Names,
        lists_names: true,
        read: |reader, entry| match &entry.node.value {
            Node::Map(flags) => reader.tool_flags(flags),
            _ => reader.tools(&entry.node),
        },
        value: |spec| json!(spec.tools),
        ..ROW
    },
    Key {
        name: "disallowed_tools",
        form: NAMES,
        default: "none",
        about: "Tools that the agent does not have, whatever `tools` has.",
        only_ours: &["disallowed_tools"],
        text: Text::Names,
        lists_names: true,
        read: |reader, entry| reader.disallowed_tools(&entry.node),
        value: |spec| json!(spec.disallowed_tools),
        ..ROW
    },
    Key {
        name: "skills",
        form: NAMES,
        default: "all of the parent's",
        about: "The only skills that the agent can load.",
        text: Text::Names,
        lists_names: true,
        read: |reader, entry| {
            reader.spec.skills = Some(entry.node.names()?);
            Ok(())
        },
        value: |spec| json!(spec.skills),
        ..ROW
    },
    Key {
        name: "mcp_servers",
        form: "list of names, or declarations by name",
        default: "all of the parent's",
        about: "The only MCP servers whose tools the agent has.",
        only_ours: &["mcp_servers"],
        lists_names: true,
        read: |reader, entry| reader.mcp_servers(&entry.node),
        value: |spec| {
            let names =
                |servers: &Vec<crate::McpServer>| servers.iter().map(|server| json!(server.name)).collect();
            spec.mcp_servers.as_ref().map_or(Value::Null, names)
        },
        ..ROW
    },
    Key {
        name: "hidden",
        form: FLAG,
        default: "false",
        about: "Models can't spawn a hidden agent, and lists leave it out; code can call it.",
        read: |reader, entry| reader.hidden(&entry.node),
        value: |spec| json!(spec.hidden),
        ..ROW
    },
    Key {
        name: "mode",
        form: "`primary`, `subagent` or `all`",
        default: "all",
        about: "Whether the agent can lead a run, be spawned, or both.",
        read: |reader, entry| reader.mode(&entry.node),
        value: |spec| json!(spec.mode),
        ..ROW
    },
    Key {
        name: "workspace.mode",
        form: "`isolated` or `shared`",
        default: "isolated",
        about: "Whether the agent has a directory of its own, or works in its parent's.",
        only_ours: &["workspace", "workspace.mode"],
        read: |reader, entry| {
            reader.spec.workspace.mode = entry.node.choice(&WorkspaceMode::NAMES)?;
            Ok(())
        },
        value: |spec| json!(spec.workspace.mode),
        ..ROW
    },
    Key {
        name: "workspace.path",
        form: "path within the workspace",
        about: "A directory whose `AGENTS.md` follows the prompt, and in which the agent works.",
        only_ours: &["workspace.path"],
        read: |reader, entry| {
            let path = obey(&entry.node, entry.node.text()?, rules::workspace_path)?;
            reader.spec.workspace.path = Some(path.into());
            Ok(())
        },
        value: |spec| json!(spec.workspace.path),
        ..ROW
    },
    Key {
        name: "url",
        form: "`http(s)://…`",
        about: "The address of an agent that another server runs, with its own prompt, model and tools: `…/v1/agents/<id>`, or that of the server for the agent that leads its runs.",
        only_ours: &["url"],
        read: |reader, entry| {
            reader.spec.url = Some(obey(&entry.node, entry.node.text()?, rules::url)?.to_owned());
            Ok(())
        },
        check: |spec| each(spec.url.as_deref(), rules::url),
        value: |spec| json!(spec.url.as_deref().filter(|url| rules::url(url).is_ok())),
        ..ROW
    },
    Key {
        name: "protocol",
        form: "`mainstem`, `agentscope`, `langgraph` or `a2a`",
        about: "The protocol of `url`; without it, the server is asked which it has.",
        only_ours: &["protocol"],
        read: |reader, entry| {
            reader.spec.protocol = Some(entry.node.choice(&Protocol::NAMES)?);
            Ok(())
        },
        value: |spec| json!(spec.protocol),
        ..ROW
    },
    Key {
        name: "headers",
        form: "name: value",
        default: "none",
        about: "Headers of requests to `url`. A secret is a `${VARIABLE}` of the environment.",
        only_ours: &["headers"],
        read: |reader, entry| reader.headers(&entry.node),
        check: |spec| each(&spec.headers, |header| rules::header(&header.name, &header.value)),
        value: |spec| spec.headers.iter().map(|header| json!(header.name)).collect(),
        ..ROW
    },
    Key {
        name: "permissions",
        form: "pattern: `allow`, `ask` or `deny`; or `deny: [pattern, …]`",
        default: "none",
        about: "Rules for tool calls; they narrow the parent's.",
        lists_names: true,
        read: |reader, entry| {
            entry.node.entries()?.iter().for_each(|entry| reader.permission(entry));
            Ok(())
        },
        value: |spec| {
            let rule = |(pattern, effect): &(_, _)| json!({ "pattern": pattern, "effect": effect });
            spec.permissions.iter().map(rule).collect()
        },
        ..ROW
    },
    Key {
        name: "persist_session",
        form: FLAG,
        default: "false",
        about: "Whether the same session, label and user find the same child again.",
        only_ours: &["persist_session"],
        read: |reader, entry| {
            reader.spec.persist_session = entry.node.flag()?;
            Ok(())
        },
        value: |spec| json!(spec.persist_session),
        ..ROW
    },
    Key {
        name: "on_lost",
        form: "`close` or `resume`",
        default: "close",
        about: "What happens to a turn of the agent if its process is killed: `close` ends the turn with an error, and the parent's model decides; `resume` continues it as a background task when the parent's next turn begins.",
        only_ours: &["on_lost"],
        read: |reader, entry| {
            reader.spec.on_lost = entry.node.choice(&OnLost::NAMES)?;
            Ok(())
        },
        value: |spec| json!(spec.on_lost),
        ..ROW
    },
    Key {
        name: "timeout_seconds",
        form: "whole number",
        about: "How long a parent waits for the agent; with 0 the agent starts as a background task.",
        only_ours: &["timeout_seconds"],
        read: |reader, entry| {
            reader.spec.timeout = Some(Duration::from_secs(entry.node.whole()?));
            Ok(())
        },
        value: |spec| json!(spec.timeout.map(|timeout| timeout.as_secs())),
        ..ROW
    },
    Key {
        name: "max_tokens_total",
        form: WHOLE,
        about: "The most tokens of one task, in and out.",
        only_ours: &["max_tokens_total"],
        read: |reader, entry| {
            let tokens = obey(&entry.node, entry.node.whole()?, rules::max_tokens_total)?;
            reader.spec.max_tokens_total = Some(tokens);
            Ok(())
        },
        check: |spec| each(spec.max_tokens_total, rules::max_tokens_total),
        value: |spec| json!(spec.max_tokens_total),
        ..ROW
    },
    Key {
        name: "output_schema",
        form: "JSON Schema, written as YAML",
        about: "The form of the answer.",
        only_ours: &["output_schema"],
        read: |reader, entry| {
            let schema = entry.node.json();
            obey(&entry.node, &schema, rules::output_schema)?;
            reader.spec.output_schema = Some(schema);
            Ok(())
        },
        check: |spec| each(&spec.output_schema, rules::output_schema),
        value: |spec| json!(spec.output_schema),
        ..ROW
    },
];

/// Returns what is wrong with each value.
fn each<T>(values: impl IntoIterator<Item = T>, rule: impl Fn(T) -> Verdict) -> Vec<String> {
    values.into_iter().filter_map(|value| rule(value).err()).collect()
}
