//! Trust in a folder's files: which parts are in effect, and the prompt for the others.

mod command;
mod find;

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::bail;
use etcetera::BaseStrategy;

pub(crate) use self::command::run;
use self::find::of_agents;
use crate::{
    approval::discard_typed,
    args::Source,
    config::{Config, Files, Settings, var},
    demo, progress,
    terminal::Terminal,
    trusted::{FolderPart, Store, Trusted, canonical, listed, remedy},
};

/// Which agents' files a command reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reads {
    NoAgents,
    Agents,
    /// Agents, and those of other products.
    Foreign,
}

impl Reads {
    /// Returns agents, with or without those of other products.
    pub(crate) fn agents(foreign: bool) -> Self {
        if foreign { Self::Foreign } else { Self::Agents }
    }
}

/// Returns the settings for a command that uses all of them. Asks the user at a terminal about
/// parts that are not trusted, and otherwise refuses them.
///
/// # Errors
/// A file can't be read; a part is not trusted.
pub(crate) fn settle(
    flags: Settings,
    source: &Source,
    reads: Reads,
    terminal: Terminal,
) -> anyhow::Result<Config> {
    let mut look = Review::new(flags, source, reads)?;
    look.leave_out_unused();
    if look.untrusted.is_empty() {
        return Ok(look.config());
    }
    let (list, remedy) = (listed(&look.untrusted), remedy(&look.untrusted));
    if !terminal.has_person() {
        bail!("not trusted:\n{list}read these files; then {remedy}");
    }
    if !agrees(&list, terminal)? {
        bail!("not trusted; remove it from the files, or {remedy}");
    }
    look.record(terminal);
    Ok(look.config())
}

/// Returns the settings for a command that starts nothing, without the parts that are not trusted,
/// and these parts.
///
/// # Errors
/// A file can't be read.
pub(crate) fn look(
    flags: Settings,
    source: &Source,
    reads: Reads,
) -> anyhow::Result<(Config, Vec<FolderPart>)> {
    let look = Review::new(flags, source, reads)?;
    Ok((look.config(), look.untrusted))
}

/// Returns the settings as [`look`] does, and warns about the parts that are not trusted.
///
/// # Errors
/// A file can't be read.
pub(crate) fn look_and_warn(
    flags: Settings,
    source: &Source,
    reads: Reads,
    terminal: Terminal,
) -> anyhow::Result<Config> {
    let (config, untrusted) = look(flags, source, reads)?;
    warn(&untrusted, terminal);
    Ok(config)
}

/// Warns about the parts that are not in effect.
pub(crate) fn warn(untrusted: &[FolderPart], terminal: Terminal) {
    if !untrusted.is_empty() {
        let (list, remedy) = (listed(untrusted), remedy(untrusted));
        progress::say(
            &format!("warning: not in effect, because it is not trusted:\n{list}  {remedy}"),
            terminal,
        );
    }
}

/// The files, and the parts of them that are not trusted.
struct Review {
    flags: Settings,
    files: Files,
    trusted: Trusted,
    untrusted: Vec<FolderPart>,
}

impl Review {
    fn new(flags: Settings, source: &Source, reads: Reads) -> anyhow::Result<Self> {
        let files = Files::read(source.named.as_deref())?;
        let everything = files.beyond(flags.clone(), var, |_| true);
        let here = canonical(Path::new("."));
        let of_files = files.parts().map(|part| FolderPart {
            folder: here.clone(),
            part: part.clone(),
            is_foreign: false,
        });
        let mut parts: Vec<_> = of_files.chain(of_agents(&everything, reads)).collect();
        let store = Store::of_user();
        if !parts.is_empty() {
            store.as_ref().map(Store::check).transpose()?;
        }
        let mut trusted = Trusted::recorded(store);
        let by_flag = TrustFlags::new(source.trust, var("MAINSTEM_TRUST"));
        let covered: Vec<_> = parts.iter().filter(|found| by_flag.covers(&found.folder)).cloned().collect();
        trusted.add(&covered);
        parts.retain(|found| !trusted.has(&found.folder, &found.part));
        Ok(Self { flags, files, trusted, untrusted: parts })
    }

    fn settings(&self) -> Settings {
        let here = canonical(Path::new("."));
        self.files.beyond(self.flags.clone(), var, |part| self.trusted.has(&here, part))
    }

    fn config(&self) -> Config {
        let named = self.files.named.iter().cloned();
        let protected = named.chain(own_directories()).collect();
        Config { settings: self.settings(), protected, trusted: self.trusted.clone() }
    }

    /// Removes the parts that the demo does not use: it has its own agents, tools and model.
    fn leave_out_unused(&mut self) {
        if self.settings().model.is_some_and(|model| model.value == demo::NAME) {
            self.untrusted.retain(|found| found.part.key() == "prices");
        }
    }

    /// Trusts the parts that were not trusted, from now on.
    fn record(&mut self, terminal: Terminal) {
        if let Err(error) = self.trusted.record(&self.untrusted) {
            progress::say(&format!("warning: trusted for this command only: {error:#}"), terminal);
        }
        self.trusted.add(&self.untrusted);
    }
}

/// The folders of `--trust` and `MAINSTEM_TRUST`.
struct TrustFlags {
    everything: bool,
    folders: Vec<PathBuf>,
}

impl TrustFlags {
    fn new(flag: bool, variable: Option<String>) -> Self {
        match variable.as_deref() {
            Some("1" | "true") => Self { everything: true, folders: Vec::new() },
            None | Some("0" | "false") => Self { everything: flag, folders: Vec::new() },
            Some(list) => {
                let folders = std::env::split_paths(list).filter_map(|folder| folder.canonicalize().ok());
                Self { everything: flag, folders: folders.collect() }
            }
        }
    }

    fn covers(&self, folder: &PathBuf) -> bool {
        self.everything || self.folders.contains(folder)
    }
}

/// Asks the person at the terminal; the end of stdin declines.
fn agrees(list: &str, terminal: Terminal) -> anyhow::Result<bool> {
    progress::say(&format!("These parts of the folder's files are not trusted:\n{list}"), terminal);
    discard_typed();
    loop {
        progress::prompt("Trust them until they change? [y/n] ");
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line)?;
        match line.trim().to_ascii_lowercase().as_str() {
            _ if read == 0 => return Ok(false),
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

/// Returns the directories of the user's configuration, sessions and trust.
fn own_directories() -> Vec<PathBuf> {
    let Ok(dirs) = etcetera::choose_base_strategy() else { return Vec::new() };
    let all = [Some(dirs.config_dir()), Some(dirs.data_dir()), dirs.state_dir()];
    all.into_iter().flatten().map(|dir| dir.join("mainstem")).collect()
}
