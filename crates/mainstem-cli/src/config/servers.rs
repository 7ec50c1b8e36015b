//! MCP servers: `[mcp.NAME]`.

use std::collections::BTreeMap;

use mainstem::mcp::Server;
use serde::Deserializer;

use super::{Setting, entries};

/// Reads servers, of which none may hold a secret in plain.
pub(super) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Setting<Server>>, D::Error> {
    entries::checked(deserializer, |name, server: &Setting<Server>| match server.value.secret_in_plain() {
        Some(secret) => Err(format!(
            "secrets are not allowed in a file: write `${{MY_KEY}}` for {secret} of MCP server {name:?}"
        )),
        None => Ok(()),
    })
}
