//! What a declaration says of a remote: where it is, and with which headers its server is asked.

use std::{collections::BTreeMap, env, fmt};

use mainstem_outbound::{Reach, Secrets};
use mainstem_spec::{AgentSpec, Protocol};

use crate::{RemoteAgent, RemoteError};

/// What a server says of an agent, or why it would refuse the agent's turns.
pub(crate) type About = Result<String, RemoteError>;

/// An agent in a protocol that declarations can name.
pub(crate) trait Declared: RemoteAgent + Sized {
    /// The protocol.
    const PROTOCOL: Protocol;

    /// Creates the agent.
    ///
    /// # Errors
    /// The URL is not valid or out of reach, or a header is not valid.
    fn declared(declaration: &Declaration) -> Result<Self, RemoteError>;

    /// Returns what the server says of the agent; `None` if it speaks another protocol.
    ///
    /// # Errors
    /// The server can't be reached, or refuses to say.
    fn describe(&self) -> impl Future<Output = Result<Option<About>, RemoteError>> + Send;
}

/// A declaration with a `url`, with its variables as they were when the agents were built.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) id: String,
    pub(crate) url: String,
    /// The protocol, if it is declared.
    pub(crate) protocol: Option<Protocol>,
    pub(crate) headers: Headers,
    pub(crate) reach: Reach,
}

impl Declaration {
    /// Reads the variables that the headers name.
    ///
    /// # Errors
    /// A header names a variable that is unset.
    pub(crate) fn new(
        url: &str,
        spec: &AgentSpec,
        reach: &Reach,
        variables: &Variables,
    ) -> Result<Self, RemoteError> {
        let headers = Headers::new(spec, variables)?;
        let (id, url, protocol, reach) = (spec.id.clone(), url.to_owned(), spec.protocol, reach.clone());
        Ok(Self { id, url, protocol, headers, reach })
    }
}

/// Headers with the values of their variables, which no message shows.
#[derive(Clone, Default)]
pub(crate) struct Headers {
    /// Name and value of each.
    pub(crate) values: Vec<(String, String)>,
    /// The values of variables that are in them.
    pub(crate) secrets: Secrets,
}

impl Headers {
    fn new(spec: &AgentSpec, variables: &Variables) -> Result<Self, RemoteError> {
        let mut headers = Self::default();
        for header in &spec.headers {
            let expanded = headers.secrets.expand(&header.value, |name| variables.get(name));
            let value = expanded
                .map_err(|error| RemoteError::invalid(format!("header {:?}: {error}", header.name)))?;
            headers.values.push((header.name.clone(), value));
        }
        Ok(headers)
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.iter().map(|(name, _)| name)).finish()
    }
}

/// The variables that headers may name: those of the program, and those of the environment.
#[derive(Clone, Default)]
pub(crate) struct Variables(BTreeMap<String, String>);

impl Variables {
    pub(crate) fn insert(&mut self, name: String, value: String) {
        self.0.insert(name, value);
    }

    /// Returns the value of a variable, unless it is unset or empty.
    fn get(&self, name: &str) -> Option<String> {
        let value = self.0.get(name).cloned().or_else(|| env::var(name).ok());
        value.filter(|value| !value.is_empty())
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
