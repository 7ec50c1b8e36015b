//! What the kernel keeps a command from.

use std::{
    io,
    path::{Path, PathBuf},
};

#[cfg(target_os = "linux")]
use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
#[cfg(target_os = "linux")]
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
};

use super::ShellOptions;

/// Where programs, libraries and what they read are.
#[cfg(target_os = "linux")]
const READABLE: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
];

#[cfg(target_os = "linux")]
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Whether the kernel holds a command in its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confinement {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has Landlock"))]
    Full,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has Landlock"))]
    Partial,
    None,
}

impl Confinement {
    /// What a model should know of it.
    pub(crate) fn note(self) -> Option<&'static str> {
        match self {
            Self::Full => None,
            Self::Partial => Some("confined only in part by the kernel"),
            Self::None => Some("not confined by the kernel"),
        }
    }
}

/// The rules for one command.
#[derive(Debug)]
pub(super) struct Rules {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has Landlock"))]
    readable: Vec<PathBuf>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has Landlock"))]
    writable: Vec<PathBuf>,
}

impl Rules {
    pub(super) fn new(root: &Path, options: &ShellOptions) -> Self {
        let mut writable = options.writable.clone();
        writable.extend([root.to_owned(), "/tmp".into()]);
        Self { readable: options.readable.clone(), writable }
    }

    /// Puts the calling thread, and whatever it starts, under the rules. There is no way back: the thread has to end.
    ///
    /// Signals to processes outside are held back as well, and so is what `/proc` tells of them: their environment holds secrets.
    #[cfg(target_os = "linux")]
    pub(super) fn restrict_thread(&self) -> io::Result<Confinement> {
        drop_capabilities()?;
        match self.restrict().map_err(io::Error::other)? {
            RulesetStatus::FullyEnforced => Ok(Confinement::Full),
            RulesetStatus::PartiallyEnforced => Ok(Confinement::Partial),
            RulesetStatus::NotEnforced => Ok(Confinement::None),
        }
    }

    #[cfg(target_os = "linux")]
    fn restrict(&self) -> Result<RulesetStatus, RulesetError> {
        let abi = ABI::V6;
        let (read, all) = (AccessFs::from_read(abi), AccessFs::from_all(abi));
        let no_devices = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
        let status = Ruleset::default()
            .handle_access(all)?
            .scope(Scope::from_all(abi))?
            .create()?
            .add_rules(path_beneath_rules(READABLE, read))?
            .add_rules(path_beneath_rules(&self.readable, read))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
            .add_rules(path_beneath_rules(&self.writable, no_devices))?
            .restrict_self()?;
        Ok(status.ruleset)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn restrict_thread(&self) -> io::Result<Confinement> {
        Ok(Confinement::None)
    }
}

/// Takes most of root's power from what the calling thread starts, if it has any; files of other users can still be worked on.
///
/// Without this, root's processes may look into all others (`CAP_PERFMON`, `CAP_SYS_PTRACE`), whatever Landlock says.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> io::Result<()> {
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::KILL
        | CapabilitySet::NET_BIND_SERVICE;
    for dropped in CapabilitySet::all().difference(kept).iter() {
        // It fails for who may not, who has none then, and for those that the kernel doesn't know.
        let _ = remove_capability_from_bounding_set(dropped);
    }
    let has = capabilities(None)?;
    let left = CapabilitySets {
        effective: has.effective & kept,
        permitted: has.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, left)?)
}
