//! The configuration: flag before environment, before `./mainstem.toml`, before the user's
//! `mainstem/config.toml`.

pub(crate) mod command;
mod entries;
mod file;
mod guarded;
mod input_roles;
pub(crate) mod keys;
mod listed;
mod permissions;
mod project;
pub(crate) mod providers;
pub(crate) mod read;
mod remote_hosts;
mod servers;
mod setting;
mod settings;
mod shell_limits;
mod switch;
mod table;
pub(crate) mod text;

use std::path::{Path, PathBuf};

use anyhow::bail;
use etcetera::BaseStrategy;
use mainstem::policy::Part;

use self::{
    file::{Divided, File},
    table::{Layered, Narrow, Table},
};
pub(crate) use self::{
    providers::{Access, VariableName},
    setting::{CompactAt, Setting, value},
    settings::{Budget, FleetLimits, Settings},
    shell_limits::ShellLimits,
};
use crate::trusted::Trusted;

/// The name of a project's file.
pub(crate) const NAME: &str = "mainstem.toml";

/// The largest configuration file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The file of the directory where the command runs, which may come from elsewhere.
pub(crate) const PROJECT: &str = "./mainstem.toml";

/// What is in effect for a command.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    /// Files of the user that agents don't write, wherever they are.
    pub(crate) protected: Vec<PathBuf>,
    /// The trusted parts of files.
    pub(crate) trusted: Trusted,
}

/// Returns an environment variable, unless it is blank.
pub(crate) fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The parsed files of a configuration, before any of their settings is in effect.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// The file of the folder where the command runs.
    project: Divided,
    /// The user's file, or the one that was named: all of it is trusted.
    own: Settings,
    /// The file that was named.
    pub(crate) named: Option<PathBuf>,
}

impl Files {
    /// Reads the named file; or the project's and the user's, which need not exist.
    ///
    /// # Errors
    /// A file can't be read or is invalid; the error has the place in it.
    pub(crate) fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = named {
            let Some(file) = read_file(path)? else { bail!("{}: there is no such file", path.display()) };
            return Ok(Self { own: file.settings, named: Some(path.to_owned()), ..Self::default() });
        }
        let user = etcetera::choose_base_strategy().ok();
        let user = user.map(|dirs| dirs.config_dir().join("mainstem").join("config.toml"));
        let user = user.map(|path| read_file(&path)).transpose()?.flatten();
        let own = user.map(|file| file.settings).unwrap_or_default();
        Ok(Self { own, ..Self::of_folder(Path::new("."))? })
    }

    /// Reads the file of a folder, and no other.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn of_folder(folder: &Path) -> anyhow::Result<Self> {
        let path = if folder == Path::new(".") { PathBuf::from(PROJECT) } else { folder.join(NAME) };
        let project = read_file(&path)?.map(File::divide).unwrap_or_default();
        Ok(Self { project, ..Self::default() })
    }

    /// Returns the parts of the project's file that need trust.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.project.parts.iter().map(|(part, _)| part)
    }

    /// Returns the flags; beyond them the environment, the trusted parts of the project's file, and
    /// the user's file.
    pub(crate) fn beyond(
        &self,
        flags: Settings,
        var: impl Fn(&str) -> Option<String>,
        is_trusted: impl Fn(&Part) -> bool,
    ) -> Settings {
        let project = self.project.trusted(is_trusted).narrowed_by(&self.own);
        flags.or(Settings::from_env(&var)).or(project).or(self.own.clone())
    }
}

fn read_file(path: &Path) -> anyhow::Result<Option<File>> {
    read::text(path, MAX_BYTES)?.map(|text| file::parse(&text, path)).transpose()
}

#[cfg(test)]
mod tests;
