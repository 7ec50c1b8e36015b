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

/// The directory that also has secrets of the machine, such as hashes of passwords and private
/// keys. Only root could read these.
const SETTINGS: &str = "/etc";

/// How many of its files are looked at; there are some thousands.
const MOST: usize = 50_000;

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
    let public = Public::of(Path::new(SETTINGS), geteuid().is_root());
    let status = Ruleset::default()
        .handle_access(all)?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new(".")?, if rules.is_read_only { read } else { no_devices }))?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(&public.whole, read))?
        .add_rules(path_beneath_rules(&public.listed, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(&rules.readable, read))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(&rules.writable, no_devices))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// What every user of the machine may read.
#[derive(Debug, Default)]
struct Public {
    /// Files, and directories with all that is below them.
    whole: Vec<PathBuf>,
    /// Directories of which a part is readable: their names can be listed.
    listed: Vec<PathBuf>,
    /// How many files were looked at.
    seen: usize,
}

impl Public {
    /// Finds it in a directory. Only root can read more than every user, so for others it is all.
    fn of(directory: &Path, is_root: bool) -> Self {
        let mut public = Self::default();
        if !is_root || public.is_whole(directory) {
            public.whole.push(directory.to_owned());
        }
        public
    }

    /// Returns `true` if every user may read a path and all below it; if only a part of it, adds
    /// that.
    fn is_whole(&mut self, path: &Path) -> bool {
        self.seen += 1;
        let Ok(about) = path.symlink_metadata() else { return false };
        if self.seen > MOST {
            return false;
        }
        // What a link leads to has rules of its own.
        if about.is_symlink() {
            return true;
        }
        if !about.is_dir() {
            return about.mode() & 0o004 != 0;
        }
        if about.mode() & 0o005 != 0o005 {
            return false;
        }
        let Ok(entries) = fs::read_dir(path) else { return false };
        let (mut whole, mut is_whole) = (Vec::new(), true);
        for entry in entries {
            match entry {
                Ok(entry) if self.is_whole(&entry.path()) => whole.push(entry.path()),
                _ => is_whole = false,
            }
        }
        if !is_whole {
            self.whole.extend(whole.into_iter().filter(|path| !path.is_symlink()));
            self.listed.push(path.to_owned());
        }
        is_whole
    }
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
        let mut public = Public::of(&at("a"), true);
        public.whole.sort();
        let expected = (vec![at("a/passwd"), at("a/ssl/certs")], vec![at("a/ssl"), at("a")]);
        assert_eq!((public.whole, public.listed), expected);
        assert_eq!(Public::of(&at("a/ssl/certs"), true).whole, [at("a/ssl/certs")]);
        assert_eq!(Public::of(&at("none"), true).whole, [""; 0].map(PathBuf::from));
        assert_eq!(Public::of(&at("a"), false).whole, [at("a")]);
    }
}
