//! Namespaces: processes that end with the first of them, a `/proc` that shows no others, paths that can't be changed.

use std::{
    collections::BTreeSet,
    fs, io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use nix::sched::CloneFlags;
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat2},
    mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, mount_remount},
    process::{getegid, geteuid},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
    },
};

use crate::Network;

/// Most paths that are protected; a command may make as many as it likes.
const MOST: usize = 256;

/// Gives the next child of this process a process namespace, and no network if it is to have none. Returns whether the system has it so.
///
/// Root needs no further namespace. Other users need a user namespace, which maps them to their own id.
pub(crate) fn unshare(network: Network) -> bool {
    let mut flags = CloneFlags::CLONE_NEWPID;
    if network == Network::Off {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    if geteuid().is_root() {
        return nix::sched::unshare(flags).is_ok();
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    nix::sched::unshare(flags | CloneFlags::CLONE_NEWUSER).is_ok() && settle(user, group).is_ok()
}

/// Completes a user namespace, and keeps the right to mount for the inner process.
fn settle(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    let has = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::SYS_ADMIN, ..has })?;
    Ok(configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?)
}

/// In the inner process: a view of the file system of its own, with a `/proc` of the namespace. Returns whether the paths are read-only
/// in it.
pub(crate) fn furnish(protected: &[PathBuf]) -> bool {
    let own = || {
        nix::sched::unshare(CloneFlags::CLONE_NEWNS)?;
        mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
        io::Result::Ok(())
    };
    if own().is_err() {
        return false;
    }
    // Within some containers it is refused; then `/proc` shows the processes outside, with their numbers there.
    let _ = mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None);
    let mut pinned = BTreeSet::new();
    let paths = protected.iter().flat_map(|pattern| expand(pattern)).take(MOST);
    // One that can't be protected leaves the others as they are.
    paths.filter(|path| protect(path, &mut pinned).is_err()).count() == 0
}

/// The existing paths of a pattern, in which `*` stands for any one component.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for component in pattern.components() {
        paths = match component {
            Component::Normal(name) if name == "*" => paths.iter().flat_map(|path| entries(path)).collect(),
            Component::Normal(name) => paths.iter().map(|path| path.join(name)).collect(),
            // Nothing else is below the working directory.
            _ => return Vec::new(),
        };
    }
    paths.retain(|path| open(path).is_ok());
    paths
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(".").join(path)).into_iter().flatten().flatten();
    entries.map(|entry| path.join(entry.file_name())).take(MOST).collect()
}

/// Makes a path read-only. What it lies in can't be moved away then, for the system moves nothing that is mounted.
fn protect(path: &Path, pinned: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let parents = path.ancestors().skip(1).filter(|parent| *parent != "").collect::<Vec<_>>();
    for parent in parents.into_iter().rev() {
        if pinned.insert(parent.to_owned()) {
            bind(parent)?;
        }
    }
    bind(path)?;
    let bound = open(path)?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | kept(&bound)?;
    Ok(mount_remount(name(&bound), flags, "")?)
}

/// Mounts a path on itself.
fn bind(path: &Path) -> io::Result<()> {
    let bound = open(path)?;
    Ok(mount_bind(name(&bound), name(&bound))?)
}

/// Only what is below the working directory, and no link: a command may have left one there.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), how)?)
}

fn name(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// What must stay as it is when a mount of another namespace changes.
fn kept(file: &OwnedFd) -> io::Result<MountFlags> {
    let has = fstatvfs(file)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    Ok(pairs
        .into_iter()
        .filter(|(is, _)| has.contains(*is))
        .fold(MountFlags::empty(), |all, (_, flag)| all | flag))
}
