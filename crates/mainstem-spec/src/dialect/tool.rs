//! What other products call our tools.

use super::{Dialect, claude_code, copilot, gemini_cli, open_code};

/// Ours for a tool of that product: none if it has no counterpart here, `None` if the product has
/// no such tool.
pub(crate) fn our_tools(dialect: Dialect, name: &str) -> Option<&'static [&'static str]> {
    match dialect {
        // Their files name no tools.
        Dialect::Mainstem | Dialect::Cursor | Dialect::Codex | Dialect::Goose => None,
        Dialect::GeminiCli => find(&gemini_cli::TOOLS, name),
        Dialect::ClaudeCode => find(&claude_code::TOOLS, name),
        Dialect::OpenCode => find(&open_code::TOOLS, name),
        Dialect::Copilot => find(&copilot::TOOLS, &plain(name)?),
    }
}

/// Ours for a name that in a file of ours is surely another product's: no tool here is written with
/// a capital.
pub(crate) fn foreign_tool(name: &str) -> Option<&'static [&'static str]> {
    find(&claude_code::TOOLS, name).filter(|ours| !ours.is_empty())
}

/// Ours for a tool of an MCP server: `mcp__github` is all of that server's, in Claude Code, and so
/// are `github/*` in Copilot and `mcp_github_*` in Gemini CLI.
pub(crate) fn server_tool(dialect: Dialect, name: &str) -> Option<String> {
    match dialect {
        Dialect::ClaudeCode => {
            let server = name.strip_prefix("mcp__").filter(|server| !server.contains("__"))?;
            Some(format!("mcp__{server}__*"))
        }
        Dialect::Copilot => {
            let (server, tool) = name.split_once('/')?;
            plain(name).is_none().then(|| format!("mcp__{server}__{tool}"))
        }
        Dialect::GeminiCli => {
            let rest = name.strip_prefix("mcp_").filter(|rest| !rest.starts_with('_'))?;
            match rest.split_once('_') {
                None if rest == "*" => Some("mcp__*".to_owned()),
                None => None,
                Some((server, tool)) => Some(format!("mcp__{server}__{tool}")),
            }
        }
        Dialect::Mainstem | Dialect::OpenCode | Dialect::Cursor | Dialect::Codex | Dialect::Goose => None,
    }
}

fn find(table: &[(&str, &'static [&'static str])], name: &str) -> Option<&'static [&'static str]> {
    table.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// `edit/editFiles` is `editfiles`, `edit/*` is `edit`; `github/search` is a server's tool.
fn plain(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    match name.split_once('/') {
        None => Some(name),
        Some((set, _)) if !copilot::SETS.contains(&set) => None,
        Some((set, "*")) => Some(set.to_owned()),
        Some((_, tool)) => Some(tool.to_owned()),
    }
}
