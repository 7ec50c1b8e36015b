//! Confinement of a command by the kernel.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    Scope, path_beneath_rules,
};
use rustix::{
    process::geteuid,
    thread::{
        CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    },
};

use crate::{Files, Rules};

/// The directories of programs, libraries and their data.
const READABLE: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
];

/// The directory of settings, and of secrets that only root can read, such as hashes of passwords
/// and private keys.
const SETTINGS: &str = "/etc";

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
    let settings = settings(Path::new(SETTINGS), geteuid().is_root());
    let status = Ruleset::default()
        .handle_access(all)?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new(".")?, if rules.is_read_only { read } else { no_devices }))?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(&settings, read))?
        // Names of files are no secret; a rule applies to all directories below.
        .add_rules(path_beneath_rules([SETTINGS], AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(&rules.readable, read))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(&rules.writable, no_devices))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Returns the paths below a directory of settings that commands may read. Only root can read more
/// than every user of the machine can, so its commands get what every user can read.
fn settings(directory: &Path, is_root: bool) -> Vec<PathBuf> {
    let mut readable = Vec::new();
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    if !is_root || collect_readable(&directory, &mut readable) {
        readable.push(directory);
    }
    readable
}

/// Returns `true` if every user can read a path and everything below it. If not, adds the parts
/// that every user can read.
fn collect_readable(path: &Path, readable: &mut Vec<PathBuf>) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return false };
    // The target of a link has rules of its own.
    if metadata.is_symlink() {
        return true;
    }
    if !metadata.is_dir() {
        return metadata.mode() & 0o004 != 0;
    }
    if metadata.mode() & 0o005 != 0o005 {
        return false;
    }
    let Ok(entries) = fs::read_dir(path) else { return false };
    let (mut parts, mut is_whole) = (Vec::new(), true);
    for entry in entries {
        match entry {
            Ok(entry) if collect_readable(&entry.path(), readable) => parts.push(entry.path()),
            _ => is_whole = false,
        }
    }
    if !is_whole {
        readable.extend(parts.into_iter().filter(|part| !part.is_symlink()));
    }
    is_whole
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

#[cfg(test)]
mod tests {
    //! What root's commands may read of the machine's settings.

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn roots_commands_read_what_every_user_may_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for (path, mode) in
            [("a/passwd", 0o644), ("a/shadow", 0o640), ("a/ssl/certs/x", 0o644), ("a/ssl/private/key", 0o644)]
        {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "").unwrap();
            fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        for (path, mode) in [("a", 0o755), ("a/ssl", 0o755), ("a/ssl/certs", 0o755), ("a/ssl/private", 0o710)]
        {
            fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink(at("a/shadow"), at("a/link")).unwrap();
        let mut readable = settings(&at("a"), true);
        readable.sort();
        assert_eq!(readable, [at("a/passwd"), at("a/ssl/certs")]);
        assert_eq!(settings(&at("a/ssl/certs"), true), [at("a/ssl/certs")]);
        assert_eq!(settings(&at("none"), true), [""; 0].map(PathBuf::from));
        assert_eq!(settings(&at("a"), false), [at("a")]);
        // A directory that is a link is no exception.
        std::os::unix::fs::symlink(at("a"), at("b")).unwrap();
        assert_eq!(settings(&at("b"), true).len(), 2);
    }
}
