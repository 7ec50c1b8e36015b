//! `-w`, for commands that use no other setting.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use crate::config::{Setting, Settings};

/// The setting whose flag it is.
const ID: &str = "workspace";

/// The flag of the workspace, as [`Settings`] declares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkspaceFlag(Option<Setting<PathBuf>>);

impl WorkspaceFlag {
    /// Returns what the flag sets.
    pub(crate) fn settings(&self) -> Settings {
        Settings { workspace: self.0.clone(), ..Settings::default() }
    }
}

impl Args for WorkspaceFlag {
    fn augment_args(command: Command) -> Command {
        let settings = Settings::augment_args(Command::new(""));
        let flag = settings.get_arguments().find(|arg| arg.get_id() == ID).cloned();
        command.args(flag.map(|flag| flag.global(true)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WorkspaceFlag {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(matches.get_one(ID).cloned()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
