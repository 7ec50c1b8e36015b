//! The declaration of a server.

mod declaration;

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use serde::Deserialize;

use self::declaration::Declaration;

/// A server that is started or reached when it is first needed.
///
/// Texts may hold `${NAME}` or `${NAME:-default}`, which is looked up in the environment when the
/// server starts; such values are never shown.
///
/// ```
/// use mainstem_mcp::Server;
///
/// let files = Server::command("npx", ["-y", "@modelcontextprotocol/server-filesystem", "."]);
/// let docs = Server::http("https://docs.example/mcp")
///     .with_header("Authorization", "Bearer ${DOCS_TOKEN}");
///
/// let read: Server = serde_json::from_str(
///     r#"{"command": "uvx", "args": ["mcp-server-git"], "tools": ["git_log", "git_diff*"]}"#,
/// )?;
/// let git = Server::command("uvx", ["mcp-server-git"]);
/// assert_eq!(read, git.with_tools(["git_log", "git_diff*"]));
/// # let _ = (files, docs);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Declaration")]
pub struct Server {
    pub(crate) reach: Reach,
    pub(crate) start_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) is_trusted: bool,
    is_listed_only: bool,
    /// Which addresses it may have; all of them by default.
    pub(crate) within: Option<mainstem_outbound::Reach>,
}

/// The two transports.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    Command { program: String, args: Vec<String>, env: BTreeMap<String, String>, dir: Option<PathBuf> },
    Http { url: String, headers: BTreeMap<String, String> },
}

impl Server {
    /// Creates a server that is a program, which speaks MCP over its stdin and stdout.
    ///
    /// It is started in a process group of its own. Of this process's environment it gets `PATH`,
    /// `HOME`, `USER`, the locale and similar variables, and those of [`with_env`](Self::with_env).
    pub fn command(program: impl Into<String>, args: impl IntoIterator<Item: Into<String>>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::new(Reach::Command { program: program.into(), args, env: BTreeMap::new(), dir: None })
    }

    /// Creates a server that speaks streamable HTTP at this address.
    pub fn http(url: impl Into<String>) -> Self {
        Self::new(Reach::Http { url: url.into(), headers: BTreeMap::new() })
    }

    fn new(reach: Reach) -> Self {
        Self {
            reach,
            start_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(120),
            tools: None,
            is_trusted: false,
            is_listed_only: false,
            within: None,
        }
    }

    /// Sets a variable of the program's environment. Ignored for a server over HTTP.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Reach::Command { env, .. } = &mut self.reach {
            env.insert(name.into(), value.into());
        }
        self
    }

    /// Sets the working directory of the program; this process's by default.
    #[must_use]
    pub fn with_dir(mut self, path: impl Into<PathBuf>) -> Self {
        if let Reach::Command { dir, .. } = &mut self.reach {
            *dir = Some(path.into());
        }
        self
    }

    /// Sets a header of every request. Ignored for a program.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Reach::Http { headers, .. } = &mut self.reach {
            headers.insert(name.into(), value.into());
        }
        self
    }

    /// Limits the addresses at which it is reached, as for one that a file or a model names; not by
    /// default. One that is out of reach does not start. Ignored for a program.
    #[must_use]
    pub fn with_reach(mut self, reach: mainstem_outbound::Reach) -> Self {
        self.within = Some(reach);
        self
    }

    /// Offers only these of its tools, by the server's own names; a `*` at the end stands for any
    /// ending.
    #[must_use]
    pub fn with_tools(mut self, names: impl IntoIterator<Item: Into<String>>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the timeout for its start, until it has listed its tools; 30 s by default.
    #[must_use]
    pub fn with_start_timeout(mut self, time: Duration) -> Self {
        self.start_timeout = time;
        self
    }

    /// Sets the timeout of a call, which each progress message restarts; 2 min by default.
    #[must_use]
    pub fn with_timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Sets whether its [annotations] are trusted, so that tools which it calls read-only run in
    /// plan mode. Not by default: a server can claim anything.
    ///
    /// [annotations]: https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations
    #[must_use]
    pub fn with_trust(mut self, is_trusted: bool) -> Self {
        self.is_trusted = is_trusted;
        self
    }

    /// Sets whether only agents whose spec lists it have its tools; not by default.
    #[must_use]
    pub fn with_listed_only(mut self, is_listed_only: bool) -> Self {
        self.is_listed_only = is_listed_only;
        self
    }

    /// Returns the program with its arguments as they are declared; `None` for a server over HTTP.
    pub fn command_line(&self) -> Option<String> {
        match &self.reach {
            Reach::Command { program, args, .. } => {
                Some([std::slice::from_ref(program), args].concat().join(" "))
            }
            Reach::Http { .. } => None,
        }
    }

    /// Returns the directory of the program, if one was given.
    pub fn dir_mut(&mut self) -> Option<&mut PathBuf> {
        match &mut self.reach {
            Reach::Command { dir, .. } => dir.as_mut(),
            Reach::Http { .. } => None,
        }
    }

    /// Returns the variable or header whose name indicates a secret, and whose value is written out
    /// instead of being `${NAME}`. For files, which must not hold secrets.
    pub fn secret_in_plain(&self) -> Option<&str> {
        let (Reach::Command { env: named, .. } | Reach::Http { headers: named, .. }) = &self.reach;
        let is_word = |word: &str| {
            let word = word.to_ascii_uppercase();
            matches!(&*word, "KEY" | "APIKEY" | "TOKEN" | "SECRET" | "PASSWORD" | "AUTHORIZATION")
        };
        let is_secret = |name: &str| name.split(['_', '-']).any(is_word);
        let in_url = match &self.reach {
            Reach::Http { url, .. } => user_info(url).is_some_and(|user| !user.contains("${")),
            Reach::Command { .. } => false,
        };
        let plain = |(name, value): &(&String, &String)| is_secret(name) && !value.contains("${");
        let named = named.iter().find(plain).map(|(name, _)| &**name);
        named.or_else(|| in_url.then_some("the URL"))
    }

    /// Returns `true` if only agents that list it have its tools.
    pub fn is_listed_only(&self) -> bool {
        self.is_listed_only
    }

    /// Returns `true` if it offers a tool, by the server's own name.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let is_meant = |listed: &String| match listed.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => listed == tool,
        };
        self.tools.as_ref().is_none_or(|listed| listed.iter().any(is_meant))
    }
}

/// Returns the user and password in an address.
fn user_info(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split('/').next()?.rsplit_once('@').map(|(user, _)| user)
}

impl fmt::Display for Server {
    /// Shows the program and its arguments, or the address without user and query, as declared:
    /// without the values of variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reach {
            Reach::Command { .. } => f.write_str(&self.command_line().unwrap_or_default()),
            Reach::Http { url, .. } => {
                let url = url.split('?').next().unwrap_or_default();
                match user_info(url) {
                    Some(user) => f.write_str(&url.replacen(&format!("{user}@"), "", 1)),
                    None => f.write_str(url),
                }
            }
        }
    }
}

impl fmt::Debug for Server {
    /// Without the values of variables and headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("reach", &self.to_string())
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
