//! The parts of an agent's file that need trust.

use std::{collections::BTreeMap, path::Path};

use mainstem_policy::{Part, variables};
use mainstem_spec::{AgentSpec, McpServer, Origin, ServerTool};
use serde_json::{Map, Value, json};

/// The [key](Part::key) of the part that is a remote agent's address and headers.
pub const ADDRESS: &str = "url";

/// The [key](Part::key) of the part that gives an agent's model tools of its vendor.
pub const SERVER_TOOLS: &str = "server_tools";

/// The parts of an agent's file that count only once a person trusts them, each by itself: the MCP
/// servers that it declares, which start a process or send tool calls to an address, a remote
/// agent's address with its headers, and tools of the model's vendor, which send what the model
/// chooses to the web and are paid for.
///
/// Everything else is in effect at once, because it only narrows what the run may do anyway: tools,
/// permissions, limits and names of MCP servers choose from what the program or the user gives to
/// the run; model, prompt and directory are bounded by it. A spec that code declares has no such
/// parts.
///
/// `workspace` is the directory to which the file's path is relative.
pub fn parts(spec: &AgentSpec, workspace: &Path) -> Vec<Part> {
    let Origin::File(path) = &spec.origin else { return Vec::new() };
    let file = path.strip_prefix(workspace).unwrap_or(path).to_string_lossy().replace('\\', "/");
    let servers = spec.mcp_servers.iter().flatten().filter_map(|server| server_part(&file, server));
    servers.chain(address_part(&file, spec)).chain(server_tools_part(&file, spec)).collect()
}

/// Returns the part of an MCP server that a file declares; `None` for a server that the file only
/// names.
fn server_part(file: &str, server: &McpServer) -> Option<Part> {
    let (name, declaration) = (&server.name, server.declaration.as_ref()?);
    let part = Part::new(file, server_key(name), declaration.clone());
    Some(server_does(name, declaration).into_iter().fold(part, Part::doing))
}

/// The [key](Part::key) of the part that declares an MCP server in an agent's file.
pub fn server_key(name: &str) -> String {
    format!("mcp_servers.{name}")
}

/// Describes the effect of an MCP server's declaration, a sentence for each setting that decides
/// what is started and what it may do. The loader may still refuse the declaration.
pub fn server_does(name: &str, declaration: &Value) -> Vec<String> {
    let mut does = vec![with_variables(server_is(name, declaration), declaration)];
    let fields = |key: &str| declaration[key].as_object().into_iter().flatten().collect::<BTreeMap<_, _>>();
    if !declaration["cwd"].is_null() {
        does.push(format!(
            "starts MCP server {name:?} in the directory `{}`",
            word(&text(&declaration["cwd"]))
        ));
    }
    does.extend(fields("env").into_iter().map(|(variable, value)| {
        format!("starts MCP server {name:?} with `{}={}`", word(variable), word(&text(value)))
    }));
    let headers: Vec<_> = fields("headers").into_keys().map(|header| word(header)).collect();
    if !headers.is_empty() {
        does.push(format!("sends headers to MCP server {name:?} ({})", headers.join(", ")));
    }
    if declaration["trusted"] != Value::Bool(false) && !declaration["trusted"].is_null() {
        let what = "about which of its tools change nothing and run in plan mode";
        does.push(format!("believes MCP server {name:?} {what}"));
    }
    does
}

fn server_is(name: &str, declaration: &Value) -> String {
    let words = |key: &str| declaration[key].as_array().into_iter().flatten().map(text);
    match (&declaration["command"], &declaration["url"]) {
        (Value::Null, Value::Null) => format!("declares MCP server {name:?}"),
        (Value::Null, url) => {
            format!("sends tool calls to {}, as MCP server {name:?}", shown_address(&text(url)))
        }
        (command, _) => {
            let line: Vec<_> =
                std::iter::once(text(command)).chain(words("args")).map(|text| word(&text)).collect();
            format!("starts `{}`, as MCP server {name:?}", line.join(" "))
        }
    }
}

/// Quotes a text unless it is a single plain word, so that it can't pose as two words or as the end
/// of the sentence.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,${}*~#?&;|<>[]()!^".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { format!("{text:?}") }
}

/// Returns the part of a remote agent's address and headers.
fn address_part(file: &str, spec: &AgentSpec) -> Option<Part> {
    let url = spec.url.as_ref()?;
    let headers: Map<_, _> =
        spec.headers.iter().map(|header| (header.name.clone(), header.value.clone().into())).collect();
    let content = json!({ "url": url, "headers": headers });
    let does = format!("sends tasks to the agent at {}", shown_address(url));
    Some(Part::new(file, ADDRESS, content.clone()).doing(with_variables(does, &content)))
}

/// Returns the part that gives the model tools of its vendor.
fn server_tools_part(file: &str, spec: &AgentSpec) -> Option<Part> {
    let tools = spec.server_tools.as_ref().filter(|tools| !tools.is_empty())?;
    Some(Part::new(file, SERVER_TOOLS, json!(tools)).doing(server_tools_do(tools)))
}

/// Describes the effect of tools of the model's vendor.
pub fn server_tools_do(tools: &[ServerTool]) -> String {
    let does = |tool: &ServerTool| match tool {
        ServerTool::WebSearch => "search the web".to_owned(),
        ServerTool::CodeExecution => "run code at its vendor".to_owned(),
        other => format!("call {other} of its vendor"),
    };
    format!("lets a model {}", tools.iter().map(does).collect::<Vec<_>>().join(" and "))
}

/// The sentence, with the variables of the environment that a value reads.
pub fn with_variables(does: String, value: &Value) -> String {
    let mut names = Vec::new();
    each_text(value, &mut |text| names.extend(variables(text).map(str::to_owned)));
    names.sort();
    names.dedup();
    if names.is_empty() { does } else { format!("{does}, with {} of the environment", names.join(", ")) }
}

fn each_text(value: &Value, f: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => f(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, f)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, f)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns an address without user, password and query, which may be secrets.
pub fn shown_address(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.split(['?', '#']).next().unwrap_or_default().to_owned();
    };
    let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    if port.bytes().any(|byte| !byte.is_ascii_digit()) && !port.ends_with(']') {
        // The password has an invalid character, so its end is unknown.
        return format!("{scheme}://…");
    }
    format!("{scheme}://{host}{}", behind.split(['?', '#']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests;
