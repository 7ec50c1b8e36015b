//! A server as files declare it: the format that most products share.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::Deserialize;

use super::{Reach, Server};
use crate::Error;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table that declares an MCP server")]
pub(super) struct Declaration {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Required by other products; here `command` or `url` decides.
    #[serde(rename = "type")]
    transport: Option<String>,
    tools: Option<Vec<String>>,
    #[serde(default)]
    trusted: bool,
    #[serde(default)]
    listed_only: bool,
    timeout_seconds: Option<u64>,
    start_timeout_seconds: Option<u64>,
}

impl TryFrom<Declaration> for Server {
    type Error = Error;

    fn try_from(said: Declaration) -> Result<Self, Error> {
        said.check().map_err(Error::Declaration)?;
        let reach = match (said.command, said.url) {
            (Some(program), _) => Reach::Command { program, args: said.args, env: said.env, dir: said.cwd },
            (None, url) => Reach::Http { url: url.unwrap_or_default(), headers: said.headers },
        };
        let mut server = Self::new(reach).with_trust(said.trusted).with_listed_only(said.listed_only);
        server.tools = said.tools;
        if let Some(seconds) = said.timeout_seconds {
            server.timeout = Duration::from_secs(seconds);
        }
        if let Some(seconds) = said.start_timeout_seconds {
            server.start_timeout = Duration::from_secs(seconds);
        }
        Ok(server)
    }
}

impl Declaration {
    fn check(&self) -> Result<(), String> {
        let transport = self.transport.as_deref().unwrap_or_default();
        let wrong = match (&self.command, &self.url) {
            (None, None) => {
                "it needs `command`, a program to start, or `url`, an address for streamable HTTP"
            }
            (Some(_), Some(_)) => "it has both `command` and `url`; remove one",
            (Some(command), _) if command.trim().is_empty() => "`command` is empty",
            (_, Some(url))
                if !url.starts_with("http://") && !url.starts_with("https://") && !url.starts_with("${") =>
            {
                "`url` must begin with http:// or https://"
            }
            (Some(_), _) if !self.headers.is_empty() => "`headers` belong to a `url`, not to a `command`",
            (_, Some(_)) if !self.args.is_empty() || !self.env.is_empty() || self.cwd.is_some() => {
                "`args`, `env` and `cwd` belong to a `command`, not to a `url`"
            }
            _ if self.timeout_seconds == Some(0) || self.start_timeout_seconds == Some(0) => {
                "a timeout has at least 1 second"
            }
            _ if matches!(transport, "sse" | "ws" | "websocket") => {
                "its `type` is an old transport; servers are reached by `command`, or by `url` over streamable HTTP"
            }
            _ => return Ok(()),
        };
        Err(wrong.to_owned())
    }
}
