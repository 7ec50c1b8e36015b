//! The paths of a workspace: pure functions from ids to paths.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

/// The longest component, in bytes, that has its id in full; a longer id is cut and followed by its
/// hash.
const LONGEST: usize = 120;

/// The number of bytes of a long id that stay.
const READABLE: usize = 48;

/// Names that Windows reserves for devices.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// The component of an agent without a user, and the directories beside those of users.
const BESIDE_USERS: [&str; 2] = ["_", "tasks"];

/// The paths of one workspace. Only computes them.
///
/// Every id is one component, whatever it contains, and two different ids have different paths in
/// one directory, also on file systems that ignore case.
///
/// ```
/// use mainstem_workspace::Layout;
///
/// let layout = Layout::new("ws");
/// let path = layout.instance("reviewer", Some("../Ann"), "s-1", "sub-2");
/// assert_eq!(path.to_str(), Some("ws/agents/reviewer/%2e%2e%2f%41nn/s-1/sub-2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Creates the layout of the workspace in this directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns `sessions/<session_id>`: the directory of a session whose files a store keeps.
    pub fn session(&self, session_id: &str) -> PathBuf {
        self.root.join("sessions").join(component(session_id))
    }

    /// Returns `subagents`: one markdown file for each agent.
    pub fn subagents(&self) -> PathBuf {
        self.root.join("subagents")
    }

    /// Returns `skills`: one directory for each skill.
    pub fn skills(&self) -> PathBuf {
        self.root.join("skills")
    }

    /// Returns `agents/<parent_agent_id>/tasks/<session_id>.json`: the background tasks of a
    /// session.
    pub fn tasks(&self, parent_agent_id: &str, session_id: &str) -> PathBuf {
        let file = format!("{}.json", component(session_id));
        self.agent(parent_agent_id).join("tasks").join(file)
    }

    /// Returns `agents/<agent_id>/<user or _>/<parent_session>/<child_session>`: the directory of
    /// one isolated instance.
    pub fn instance(
        &self,
        agent_id: &str,
        user: Option<&str>,
        parent_session: &str,
        child_session: &str,
    ) -> PathBuf {
        let user = user.map_or_else(|| "_".to_owned(), user_component);
        self.agent(agent_id).join(user).join(component(parent_session)).join(component(child_session))
    }

    /// Returns `artifacts/<session_id>/<call_id>.txt`: a result that was too long for the
    /// conversation of the agent with this session. `again` is 0 unless that file exists; models
    /// give an id more than once.
    pub fn artifact(&self, session_id: &str, call_id: &str, again: u32) -> PathBuf {
        let more = if again == 0 { String::new() } else { format!(".{again}") };
        let file = format!("{}{more}.txt", component(call_id));
        self.root.join("artifacts").join(component(session_id)).join(file)
    }

    fn agent(&self, agent_id: &str) -> PathBuf {
        self.root.join("agents").join(component(agent_id))
    }
}

fn user_component(user: &str) -> String {
    if BESIDE_USERS.contains(&user) { escape(user, |index, _| index == 0) } else { component(user) }
}

/// Returns an id as a file name: lower-case letters, digits, `-` and `_` stay, every other byte is
/// `%` and its two hex digits, which can be decoded. `%` alone is the empty id, and `%%` stands
/// only before the hash of a long one.
pub(crate) fn component(id: &str) -> String {
    if id.is_empty() {
        return "%".to_owned();
    }
    let is_device = is_device(id);
    let name = escape(id, |index, byte| {
        let is_plain = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        !is_plain || (index == 0 && is_device)
    });
    if name.len() <= LONGEST { name } else { format!("{}%%{}", &name[..READABLE], hash(id)) }
}

fn escape(id: &str, is_escaped: impl Fn(usize, u8) -> bool) -> String {
    id.bytes()
        .enumerate()
        .map(
            |(index, byte)| {
                if is_escaped(index, byte) { format!("%{byte:02x}") } else { char::from(byte).to_string() }
            },
        )
        .collect()
}

fn is_device(id: &str) -> bool {
    let is_numbered = || {
        let number = id.strip_prefix("com").or_else(|| id.strip_prefix("lpt"));
        number.is_some_and(|number| number.len() == 1 && number.as_bytes()[0].is_ascii_digit())
    };
    DEVICES.contains(&id) || is_numbered()
}

fn hash(id: &str) -> String {
    Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
