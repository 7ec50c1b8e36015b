//! What commands of agents may do, for `mainstem run` and `chat`.

use clap::{Args, ValueEnum};
use mainstem::guard::{Limits, Network};

/// How commands are held, where they are allowed at all.
#[derive(Debug, Default, Args)]
pub(crate) struct Sandbox {
    /// Whether commands have a network; `on` by default.
    #[arg(long, value_name = "SWITCH", value_enum)]
    pub(crate) shell_network: Option<Switch>,
    /// Bound what each command uses, with all its processes: `memory=2GiB`, `cpu=10m`, `file_size=1GiB`, `processes=64`; several times
    /// for several.
    #[arg(long, value_name = "NAME=VALUE", value_parser = limit)]
    pub(crate) shell_limit: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// As this machine has it.
    On,
    /// None, the loopback included.
    Off,
}

impl From<Switch> for Network {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::On => Self::On,
            Switch::Off => Self::Off,
        }
    }
}

fn limit(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it like `memory=2GiB`")?;
    Limits::default().set(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}
