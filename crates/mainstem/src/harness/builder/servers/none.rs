//! The same without the feature `mcp`: there are no servers.

use mainstem_declarations::{Code, Diagnostic};
use mainstem_policy::Part;
use mainstem_spec::{AgentSpec, SpecError, SpecSet, locate};
use mainstem_subagent::ToolGrant;

use super::super::HarnessBuilder;
use crate::BuildError;

#[derive(Clone, Default)]
pub(in crate::harness::builder) struct Declared {}

#[derive(Clone)]
pub(in crate::harness) struct Servers;

impl Declared {
    #[expect(clippy::unnecessary_wraps, reason = "as with MCP")]
    pub(in crate::harness::builder) fn connect(&self, _: &HarnessBuilder) -> Result<Servers, BuildError> {
        Ok(Servers)
    }
}

impl Servers {
    pub(in crate::harness::builder) fn renew(
        &self,
        specs: &SpecSet,
        _: impl Fn(&AgentSpec) -> Vec<Part>,
    ) -> (Vec<ToolGrant>, Vec<Diagnostic>) {
        let wants =
            |spec: &AgentSpec| spec.mcp_servers.iter().flatten().any(|server| server.declaration.is_some());
        let said = |spec: &AgentSpec| {
            let why = format!(
                "agent {:?} declares an MCP server, and this program is built without the feature `mcp`",
                spec.id
            );
            let finding = locate(SpecError::error(why).about("mcp_servers"), spec, None);
            Diagnostic::new(Code::Server, finding)
        };
        (Vec::new(), specs.iter().filter(|spec| wants(spec)).map(said).collect())
    }

    pub(in crate::harness) async fn ready(&self) {}

    pub(in crate::harness) async fn shutdown(&self) {}

    pub(in crate::harness) fn diagnostics(&self) -> Vec<Diagnostic> {
        Vec::new()
    }
}
