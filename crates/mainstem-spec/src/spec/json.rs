//! A spec as JSON: what a session records of a child.

use super::Origin;

/// The origin of a spec that is read from JSON: it has no file.
pub(super) fn program() -> Origin {
    Origin::Program
}

/// An address that is valid: others may have a password.
pub(super) mod address {
    use serde::{Serialize, Serializer};

    use crate::rules;

    #[expect(clippy::ref_option, reason = "as serde calls it")]
    pub(in crate::spec) fn serialize<S: Serializer>(
        url: &Option<String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        url.as_deref().filter(|url| rules::url(url).is_ok()).serialize(serializer)
    }
}

/// Headers that are valid: the value of another may be a secret.
pub(super) mod headers {
    use serde::Serializer;

    use crate::{Header, rules};

    pub(in crate::spec) fn serialize<S: Serializer>(
        headers: &[Header],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(headers.iter().filter(|it| rules::header(&it.name, &it.value).is_ok()))
    }
}

/// A duration in whole seconds, as in a file.
pub(super) mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "as serde calls it")]
    pub(in crate::spec) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_secs()).serialize(serializer)
    }

    pub(in crate::spec) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_secs))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use crate::{
        AgentSpec, Effort, Header, Key, McpServer, Mode, OnLost, Permission, Protocol, WorkspaceMode,
    };

    /// Every key that is recorded.
    fn full() -> AgentSpec {
        let mut spec = AgentSpec::new("a", "Does things")
            .with_prompt("You do things.")
            .with_model("m")
            .with_steps(3)
            .with_tools(["x", "agent_spawn"])
            .with_persist_session(true)
            .with_on_lost(OnLost::Resume)
            .with_workspace_mode(WorkspaceMode::Shared);
        spec.mcp_servers = Some(vec![McpServer::named("files")]);
        (spec.temperature, spec.top_p, spec.compact_at) = (Some(0.5), Some(0.9), Some(60));
        (spec.effort, spec.thinking_budget, spec.max_output_tokens) = (Some(Effort::Xhigh), Some(0), Some(6));
        spec.disallowed_tools = vec!["y".into()];
        spec.server_tools = Some(vec![crate::ServerTool::CodeExecution]);
        spec.skills = Some(vec!["s".into()]);
        spec.hidden = true;
        spec.mode = Mode::Subagent;
        spec.permissions = vec![("x(*)".into(), Permission::Ask), ("*".into(), Permission::Deny)];
        spec.timeout = Some(Duration::from_secs(7));
        spec.max_tokens_total = Some(9);
        spec.output_schema = Some(json!({ "type": "object" }));
        spec.workspace.path = Some("sub".into());
        spec.url = Some("https://agents.example/a".into());
        spec.protocol = Some(Protocol::A2a);
        spec.headers = vec![Header::new("Authorization", "Bearer ${TOKEN}"), Header::new("X-Team", "blue")];
        spec
    }

    /// A key that is not in [`full`] could be missing in the JSON unnoticed.
    #[test]
    fn every_key_is_recorded() {
        let (full, new) = (full(), AgentSpec::new("b", "Does nothing"));
        let unset = Key::all().filter(|key| key.value(&full) == key.value(&new)).map(|key| key.name);
        assert_eq!(unset.collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn a_spec_comes_back_from_its_json() {
        for spec in [full(), AgentSpec::new("b", "Does nothing")] {
            let json = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<AgentSpec>(&json).unwrap(), spec, "{json}");
        }
    }

    #[test]
    fn what_may_be_secret_is_left_out() {
        let mut spec = AgentSpec::new("a", "Does things");
        spec.url = Some("https://u:hunter2@example.com".into());
        spec.headers = vec![Header::new("authorization", "hunter2")];
        let mut server = McpServer::named("files");
        server.declaration = Some(json!({ "env": { "KEY": "hunter2" } }));
        spec.mcp_servers = Some(vec![server]);
        let json = serde_json::to_string(&spec).unwrap();
        assert!(!json.contains("hunter2"), "{json}");
        assert!(json.contains("files"), "{json}");
    }
}
