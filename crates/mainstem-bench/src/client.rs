//! The clients that are compared, behind one interface.

use std::time::Duration;

use anyhow::Result;

use crate::{bare::Bare, fleet::Fleet, provider::Provider, script::Load, wire::Wire};

/// An event that a client reports.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Observation<'a> {
    /// The children's scripts are known from this time on; all clients do the same from here.
    Start(Duration),
    /// A delta of a child has arrived.
    Delta(&'a str),
}

/// What a client reports to.
pub(crate) type Seen<'s> = &'s mut (dyn FnMut(Observation<'_>) + Send);

/// The kind of a client.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ClientKind {
    Bare,
    /// Mainstem's provider without its engine.
    Provider,
    Mainstem,
}

/// A connected client.
pub(crate) enum Client {
    Bare(Bare),
    Provider(Provider),
    Fleet(Fleet),
}

impl Client {
    /// Builds its HTTP client, and runs a short load as a warm-up.
    pub(crate) async fn connect(kind: ClientKind, url: &str, wire: Wire) -> Result<Self> {
        let client = Self::new(kind, url, wire)?;
        client.run(&Load::new(1, 1), &mut |_| {}).await?;
        Ok(client)
    }

    pub(crate) fn new(kind: ClientKind, url: &str, wire: Wire) -> Result<Self> {
        Ok(match kind {
            ClientKind::Bare => Self::Bare(Bare::new(url, wire)?),
            ClientKind::Provider => Self::Provider(Provider::new(wire.model(url)?)),
            ClientKind::Mainstem => Self::Fleet(Fleet::over_http(url, wire)?),
        })
    }

    /// Reads a load to its end.
    pub(crate) async fn run(&self, load: &Load, seen: Seen<'_>) -> Result<()> {
        match self {
            Self::Bare(bare) => bare.run(load, seen).await,
            Self::Provider(provider) => provider.run(load, seen).await,
            Self::Fleet(fleet) => fleet.run(load, seen).await,
        }
    }
}

#[cfg(test)]
mod tests;
