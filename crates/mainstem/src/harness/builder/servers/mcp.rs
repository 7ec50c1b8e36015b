//! MCP servers, with the feature `mcp`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::join_all;
use mainstem_declarations::{Code, Diagnostic};
use mainstem_mcp::{Client, Reach, Server};
use mainstem_policy::Part;
use mainstem_spec::{AgentSpec, McpServer, SpecError, SpecSet, locate};
use mainstem_subagent::{Grantee, ToolGrant, trust::server_key};
use mainstem_tool::ToolSource;
use serde::Deserialize;

use super::super::HarnessBuilder;
use crate::BuildError;

/// The servers that the program declares, and whether agents may declare some.
#[derive(Clone, Default)]
pub(in crate::harness::builder) struct Declared {
    servers: BTreeMap<String, Server>,
    agents_may: bool,
}

impl HarnessBuilder {
    /// Gives agents the tools of an MCP server, as `mcp__<name>__<tool>`: all agents, or, with
    /// [`Server::with_listed_only`], those whose spec lists it in `mcp_servers`. A spec that lists
    /// servers has the tools of no others.
    ///
    /// The server is started when an agent that has it first calls a model, or by
    /// [`Harness::ready`](crate::Harness::ready). There is one for all agents and sessions of the
    /// harness, and one for those of each tenant; it ends with them. One that does not start is
    /// among [`Harness::diagnostics`](crate::Harness::diagnostics), and its tools are missing.
    pub fn with_mcp_server(mut self, name: impl Into<String>, server: Server) -> Self {
        self.servers.servers.insert(name.into(), server);
        self
    }

    /// Sets whether a spec may declare servers of its own, by their command or address in
    /// `mcp_servers`; not by default.
    ///
    /// A declared command runs with this program's rights. So a declaration in a file is in effect
    /// only once it is trusted: see [`with_trust`](Self::with_trust). A declared address is one of
    /// the public internet, or of a host that is allowed (`with_remote_host`, with the feature
    /// `remote`).
    pub fn with_agent_servers(mut self, allowed: bool) -> Self {
        self.servers.agents_may = allowed;
        self
    }
}

impl Declared {
    /// Creates a set of connections, which are made when they are first used.
    pub(in crate::harness::builder) fn connect(
        &self,
        builder: &HarnessBuilder,
    ) -> Result<Servers, BuildError> {
        let clients = self.servers.iter().map(|(name, server)| Client::new(&**name, server.clone()));
        let clients = clients.collect::<Result<_, _>>()?;
        let (agents_may, reach) = (self.agents_may, reach(builder));
        Ok(Servers(Arc::new(Inner { clients, agents_may, reach, own: Mutex::default() })))
    }
}

/// Returns the hosts at which the servers of specs are reached.
#[cfg(feature = "remote")]
fn reach(builder: &HarnessBuilder) -> Reach {
    builder.remotes.reach().clone()
}

#[cfg(not(feature = "remote"))]
fn reach(_: &HarnessBuilder) -> Reach {
    Reach::public()
}

/// The connections of a harness or a tenant.
#[derive(Clone)]
pub(in crate::harness) struct Servers(Arc<Inner>);

type Own = BTreeMap<(String, String), Client>;

struct Inner {
    clients: Vec<Client>,
    agents_may: bool,
    /// The hosts at which those of specs are reached.
    reach: Reach,
    /// The servers that specs declare, by agent and name; each runs as long as its declaration is
    /// unchanged.
    own: Mutex<Own>,
}

impl Servers {
    /// Returns the servers with their audiences, and the problems of those that agents declare;
    /// `untrusted` returns the parts of a spec that are not trusted. Servers that are no longer
    /// declared are stopped.
    pub(in crate::harness::builder) fn renew(
        &self,
        specs: &SpecSet,
        untrusted: impl Fn(&AgentSpec) -> Vec<Part>,
    ) -> (Vec<ToolGrant>, Vec<Diagnostic>) {
        let audience = |client: &Client| match client.server().is_listed_only() {
            true => Grantee::Listed,
            false => Grantee::Everyone,
        };
        let offer = |client: &Client| ToolGrant::new(Arc::new(client.clone()), audience(client));
        let (mut offers, mut problems): (Vec<_>, _) =
            (self.0.clients.iter().map(offer).collect(), Vec::new());
        // Held throughout: concurrent calls would start a server twice.
        let mut known = self.lock();
        let mut own = BTreeMap::new();
        for (spec, declared) in declarations(specs) {
            match self.own(spec, declared, &untrusted(spec), &known) {
                Ok(client) => {
                    offers.push(ToolGrant::new(Arc::new(client.clone()), Grantee::Agent(spec.id.clone())));
                    own.insert((spec.id.clone(), declared.name.clone()), client);
                }
                Err((code, why)) => {
                    let why = format!("agent {:?}: MCP server {:?}: {why}", spec.id, declared.name);
                    let finding = SpecError::error(why).about("mcp_servers");
                    let finding = locate(finding, spec, Some(&declared.name));
                    problems.push(Diagnostic::new(code, finding));
                }
            }
        }
        *known = own;
        (offers, problems)
    }

    /// Returns the server that an agent declares: the running one if the declaration is unchanged.
    fn own(
        &self,
        spec: &AgentSpec,
        declared: &McpServer,
        untrusted: &[Part],
        known: &Own,
    ) -> Result<Client, (Code, String)> {
        if !self.0.agents_may {
            let why = "agents may not start servers here; declare it for the program, or allow it with `agent_servers`";
            return Err((Code::Untrusted, why.to_owned()));
        }
        let key = server_key(&declared.name);
        if let Some(part) = untrusted.iter().find(|part| part.key() == key) {
            return Err((Code::Untrusted, format!("it is not in effect until it is trusted ({part})")));
        }
        let invalid = |why: &str| (Code::Server, why.to_owned());
        let declaration = declared.declaration.as_ref();
        let declaration = declaration.ok_or_else(|| invalid("it is declared without anything"))?;
        let server = Server::deserialize(declaration).map_err(|error| invalid(&error.to_string()))?;
        let server = server.with_reach(self.0.reach.clone());
        let known = known.get(&(spec.id.clone(), declared.name.clone())).cloned();
        match known.filter(|client| *client.server() == server) {
            Some(client) => Ok(client),
            None => Client::new(&*declared.name, server).map_err(|error| invalid(&error.to_string())),
        }
    }

    fn all(&self) -> Vec<Client> {
        self.0.clients.iter().chain(self.lock().values()).cloned().collect()
    }

    pub(in crate::harness) async fn ready(&self) {
        join_all(self.all().iter().map(ToolSource::ready)).await;
    }

    pub(in crate::harness) async fn shutdown(&self) {
        join_all(self.all().iter().map(Client::shutdown)).await;
    }

    pub(in crate::harness) fn diagnostics(&self) -> Vec<Diagnostic> {
        let problems = self.all().into_iter().flat_map(|client| client.problems());
        problems.map(|problem| Diagnostic::error(Code::Server, problem)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Own> {
        self.0.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn declarations(specs: &SpecSet) -> impl Iterator<Item = (&AgentSpec, &McpServer)> {
    specs.iter().flat_map(|spec| {
        let declared = spec.mcp_servers.iter().flatten().filter(|server| server.declaration.is_some());
        declared.map(move |server| (spec, server))
    })
}
