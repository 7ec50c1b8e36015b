//! Confinement of a command by the kernel.

use std::io;

use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    Scope, path_beneath_rules,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
};

use crate::{Files, Rules};

/// The directories of programs, libraries and their data.
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

const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Applies the rules to the calling thread and to every process that it starts. They can't be
/// lifted.
///
/// The working directory is opened by `.`, from the handle that this process was started with: the
/// rule applies to this directory even if its path leads elsewhere by now. Signals to processes
/// outside are denied, and so are their files in `/proc`: their environment holds secrets.
pub(crate) fn restrict(rules: &Rules) -> io::Result<Files> {
    drop_capabilities()?;
    match landlock(rules).map_err(io::Error::other)? {
        RulesetStatus::FullyEnforced => Ok(Files::Confined),
        RulesetStatus::PartiallyEnforced => Ok(Files::Partly),
        RulesetStatus::NotEnforced => Ok(Files::Free),
    }
}

fn landlock(rules: &Rules) -> Result<RulesetStatus, Box<dyn std::error::Error + Send + Sync>> {
    let abi = ABI::V6;
    let (read, all) = (AccessFs::from_read(abi), AccessFs::from_all(abi));
    let no_devices = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let status = Ruleset::default()
        .handle_access(all)?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new(".")?, if rules.is_read_only { read } else { no_devices }))?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(&rules.readable, read))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(&rules.writable, no_devices))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Drops most of root's capabilities for the processes that the calling thread starts; files of
/// other users stay accessible.
///
/// Without this, root's processes may inspect all others (`CAP_PERFMON`, `CAP_SYS_PTRACE`) in spite
/// of Landlock.
fn drop_capabilities() -> io::Result<()> {
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::KILL
        | CapabilitySet::NET_BIND_SERVICE;
    for dropped in CapabilitySet::all().difference(kept).iter() {
        // It fails without `CAP_SETPCAP`, as in a process without capabilities, and for
        // capabilities unknown to the kernel.
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
