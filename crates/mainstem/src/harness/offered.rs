//! The agents of a harness as an MCP server offers them.

use std::{collections::BTreeSet, sync::Arc};

use mainstem_api::{AnySession, Begun, Code, Error, NewRun, Problem};
use mainstem_declarations::leader;
use mainstem_event::{Ids, RandomIds};
use mainstem_mcp::{AgentHost, OfferedAgent};
use mainstem_tool::async_trait;

use crate::Harness;

/// The agents of a harness that can lead a run, for an [`AgentServer`](mainstem_mcp::AgentServer):
/// the one that leads its runs by default, then those that files and the program declare, without
/// the hidden ones.
///
/// ```
/// use mainstem::{HarnessAgents, mcp::{AgentHost, AgentServer}, prelude::*};
///
/// let harness = Harness::builder("main", ScriptedModel::new())
///     .with_subagent(AgentSpec::new("reviewer", "Reviews code"))
///     .build()?;
/// let agents = HarnessAgents::new(harness).with_only(["reviewer"]);
/// assert_eq!(agents.agents()[0].description, "Reviews code");
/// let server = AgentServer::new(agents);
/// # drop(server);
/// # Ok::<(), mainstem::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HarnessAgents {
    harness: Harness,
    only: Option<BTreeSet<String>>,
}

impl HarnessAgents {
    /// Creates a host of all agents of a harness.
    pub fn new(harness: Harness) -> Self {
        Self { harness, only: None }
    }

    /// Offers only the agents with these ids.
    #[must_use]
    pub fn with_only(mut self, ids: impl IntoIterator<Item: Into<String>>) -> Self {
        self.only = Some(ids.into_iter().map(Into::into).collect());
        self
    }

    fn is_offered(&self, id: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(id))
    }
}

#[async_trait]
impl AgentHost for HarnessAgents {
    fn agents(&self) -> Vec<OfferedAgent> {
        let agents = self.harness.agents();
        let (root, catalog) = (&**agents.root().id(), agents.catalog());
        let own = catalog.get(root).map(|entry| entry.spec.description.clone());
        let listed = catalog.iter().filter(|entry| entry.spec.is_listed() && entry.spec.id != root);
        let others = listed
            .filter(|entry| leader(catalog, &entry.spec.id).is_ok())
            .map(|entry| OfferedAgent::new(&entry.spec.id, &entry.spec.description));
        let description = own.unwrap_or_else(|| {
            let known: Vec<_> = catalog.iter().filter(|entry| entry.spec.is_spawnable()).collect();
            let names: Vec<_> = known.iter().map(|entry| entry.spec.id.as_str()).collect();
            format!("Works on a task, with agents of its own: {}", names.join(", "))
        });
        let offered = std::iter::once(OfferedAgent::new(root, description)).chain(others);
        offered.filter(|agent| self.is_offered(&agent.id)).collect()
    }

    async fn begin(&self, session: Option<&str>, run: NewRun) -> Result<(Arc<dyn AnySession>, Begun), Error> {
        let id = session.map_or_else(|| RandomIds.next("mcp-"), str::to_owned);
        let opened = self.harness.open_session(id.as_str()).await;
        let session = opened.map_err(|error| Problem::new(Code::BadId, error.to_string()))?;
        let begun = AnySession::run(&session, run).await?;
        Ok((Arc::new(session), begun))
    }
}
