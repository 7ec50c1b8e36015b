//! The client: the bare one or Mainstem, behind one interface.

use std::time::Duration;

use anyhow::Result;

use crate::{
    bare::Bare,
    fleet::{self, Fleet},
    provider::Provider,
    script::Load,
};

/// An observation of a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Observation<'a> {
    /// The children's scripts are known from this time on; both sides do the same from here.
    Start(Duration),
    /// A delta of a child has arrived.
    Delta(&'a str),
}

/// The kind of reader.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Side {
    Bare,
    /// Mainstem's provider without its engine.
    Provider,
    Mainstem,
}

/// A connected reader.
pub(crate) enum Client {
    Bare(Bare),
    Provider(Provider),
    Fleet(Fleet),
}

impl Client {
    /// Builds its HTTP client, and runs a short load, so that later loads measure no first use.
    pub(crate) async fn connect(side: Side, url: &str) -> Result<Self> {
        let client = match side {
            Side::Bare => Self::Bare(Bare::new(url)?),
            Side::Provider => Self::Provider(Provider::new(fleet::model(url)?)),
            Side::Mainstem => Self::Fleet(Fleet::over_http(url)?),
        };
        client.run(&Load::new(1, 1), &mut |_| {}).await?;
        Ok(client)
    }

    /// Reads a load to its end.
    pub(crate) async fn run(&self, load: &Load, seen: &mut dyn FnMut(Observation<'_>)) -> Result<()> {
        match self {
            Self::Bare(bare) => bare.run(load, seen).await,
            Self::Provider(provider) => provider.run(load, seen).await,
            Self::Fleet(fleet) => fleet.run(load, seen).await,
        }
    }
}

#[cfg(test)]
mod tests;
