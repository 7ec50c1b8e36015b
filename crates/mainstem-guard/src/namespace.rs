//! Namespaces: processes that end with the first of them, a `/proc` that shows only them, and
//! read-only paths.

use std::{
    collections::BTreeSet,
    fs, io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    process::Stdio,
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

use crate::{
    Network,
    program::{Program, TRIAL},
};

/// Resolves only paths below the working directory, without links: a command may have created one
/// there.
pub(crate) const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Gives the next child of this process a process namespace, and an empty network namespace if it
/// is to have no network. Returns `false` if the system refuses; this process is then unchanged.
///
/// Root needs no further namespace. Other users need a user namespace, which maps them to their own
/// id.
pub(crate) fn unshare(network: Network) -> bool {
    let mut flags = CloneFlags::CLONE_NEWPID;
    if network == Network::Off {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    if geteuid().is_root() {
        return nix::sched::unshare(flags).is_ok();
    }
    // A process can't leave a user namespace, even if the system then refuses to map its ids:
    // another process tries it first.
    can_map_ids() && enter(flags)
}

fn enter(flags: CloneFlags) -> bool {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    nix::sched::unshare(flags | CloneFlags::CLONE_NEWUSER).is_ok() && map_ids(user, group).is_ok()
}

/// Returns `true` if another process, which ends at once, can enter a user namespace and map its
/// ids.
fn can_map_ids() -> bool {
    Program::again(TRIAL).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Enters a user namespace; returns the exit code.
pub(crate) fn trial() -> i32 {
    if enter(CloneFlags::CLONE_NEWPID) { 0 } else { 1 }
}

/// Maps the ids of a user namespace, and keeps the right to mount for the inner process.
fn map_ids(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    let has = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::SYS_ADMIN, ..has })?;
    Ok(configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?)
}

/// Gives the inner process a mount namespace, with a `/proc` of its process namespace, in which
/// these paths are read-only. Returns `false` if the system refuses the namespace.
///
/// # Errors
/// If the namespace exists but one of the paths can't be made read-only.
pub(crate) fn mount_own_proc(read_only: &[PathBuf]) -> io::Result<bool> {
    let own = || {
        nix::sched::unshare(CloneFlags::CLONE_NEWNS)?;
        mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
        io::Result::Ok(())
    };
    if own().is_err() {
        return Ok(false);
    }
    // Some containers refuse it; then `/proc` shows the processes outside, with their numbers
    // there.
    let _ = mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None);
    let mut pinned = BTreeSet::new();
    for path in read_only {
        match protect(path, &mut pinned) {
            // The path was removed in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(|error| {
                let why = format!("{} can't be made read-only: {error}", path.display());
                io::Error::new(error.kind(), why)
            })?,
        }
    }
    Ok(true)
}

/// Makes a path read-only. Its parents can't be moved away then, because the system refuses to move
/// a mount point.
fn protect(path: &Path, pinned: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let parents = path.ancestors().skip(1).filter(|parent| *parent != "").collect::<Vec<_>>();
    for parent in parents.into_iter().rev() {
        if pinned.insert(parent.to_owned()) {
            bind(parent)?;
        }
    }
    bind(path)?;
    let bound = open(path)?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | preserved_flags(&bound)?;
    Ok(mount_remount(name(&bound), flags, "")?)
}

/// Mounts a path on itself.
fn bind(path: &Path) -> io::Result<()> {
    let bound = open(path)?;
    Ok(mount_bind(name(&bound), name(&bound))?)
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), BENEATH)?)
}

fn name(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Returns the flags that a remount must preserve.
fn preserved_flags(file: &OwnedFd) -> io::Result<MountFlags> {
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
