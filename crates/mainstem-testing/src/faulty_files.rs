//! A file layer that fails: a process whose writes to a directory run out of space, fail, tear, or
//! kill it.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

const SOURCE: &str = include_str!("faulty_files/layer.c");

/// The numbers of kinds of calls in `layer.c`.
const WRITE: u32 = 1;
const SYNC: u32 = 2;
const ANY: u32 = 15;

const NO_SPACE: u32 = 28;
const BROKEN: u32 = 5;

/// A fault of the files of a process. One that names a kind of call happens at the next call of
/// that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a test goes through all of them")]
pub enum Fault {
    /// Writes fail with `ENOSPC` from here on.
    DiskFull,
    /// One write fails with `ENOSPC`.
    NoSpace,
    /// One call fails with `EIO`.
    Io,
    /// Every call fails with `EIO` from here on.
    IoForGood,
    /// One sync fails with `EIO`.
    Sync,
    /// One write writes its first half and fails with `EIO`.
    Torn,
    /// The process is killed after the first half of a write.
    TornByKill,
    /// The process is killed before a call.
    Kill,
    /// The process is killed, and unsynced writes are lost; see [`FaultyFiles::lose_power`].
    PowerLoss,
    /// The clock jumps so many seconds.
    Clock(i64),
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 11] = [
        Self::DiskFull,
        Self::NoSpace,
        Self::Io,
        Self::IoForGood,
        Self::Sync,
        Self::Torn,
        Self::TornByKill,
        Self::Kill,
        Self::PowerLoss,
        Self::Clock(3_600),
        Self::Clock(-3_600),
    ];

    /// Returns `true` if the process is killed.
    pub fn is_fatal(self) -> bool {
        matches!(self, Self::TornByKill | Self::Kill | Self::PowerLoss)
    }

    /// Returns the variables of `layer.c` besides `AT`: the ends of their names, and their values.
    fn settings(self) -> Vec<(&'static str, i64)> {
        let errno = |errno: u32, kinds: u32| vec![("ERRNO", errno.into()), ("KINDS", kinds.into())];
        let and = |mut settings: Vec<_>, more: &[(&'static str, i64)]| {
            settings.extend_from_slice(more);
            settings
        };
        match self {
            Self::DiskFull => and(errno(NO_SPACE, WRITE), &[("LASTS", 1)]),
            Self::NoSpace => errno(NO_SPACE, WRITE),
            Self::Io => errno(BROKEN, ANY),
            Self::IoForGood => and(errno(BROKEN, ANY), &[("LASTS", 1)]),
            Self::Sync => errno(BROKEN, SYNC),
            Self::Torn => and(errno(BROKEN, WRITE), &[("TORN", 1)]),
            Self::TornByKill => and(errno(BROKEN, WRITE), &[("TORN", 1), ("KILL", 1)]),
            Self::Kill | Self::PowerLoss => and(errno(BROKEN, ANY), &[("KILL", 1)]),
            Self::Clock(seconds) => vec![("JUMP", seconds), ("KINDS", ANY.into())],
        }
    }
}

/// A call that changed a file, or failed to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "read by tests")]
pub struct FileCall {
    /// Whether the fault happened at it.
    pub is_faulty: bool,
    /// Its name, its file and the number of bytes.
    pub line: String,
}

/// A directory whose files fail when a test says so, for a process that is started with its
/// [`variables`](Self::variables).
///
/// The layer is a library of 150 lines of C, compiled by `cc` and preloaded into the process by the
/// dynamic linker. It numbers the calls that change files below the directory (`write`, `pwrite`,
/// `fsync`, `fdatasync`, `ftruncate`, `rename`) and makes one of them fail with a [`Fault`].
/// Programs that the process starts are not affected. On Linux with glibc.
#[derive(Debug)]
pub struct FaultyFiles {
    dir: PathBuf,
}

impl FaultyFiles {
    /// Compiles the layer into an existing directory, and creates the directory
    /// [`files`](Self::files) below it.
    ///
    /// # Errors
    /// If the C compiler is missing or fails; the message is for the developer who runs the test.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let this = Self { dir: fs::canonicalize(dir)? };
        for name in ["files", "synced"] {
            fs::create_dir(this.dir.join(name))?;
        }
        fs::write(this.dir.join("layer.c"), SOURCE)?;
        let mut cc = Command::new("cc");
        cc.current_dir(&this.dir);
        cc.args(["-std=gnu17", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-o", "layer.so"]);
        let output = cc.args(["layer.c", "-ldl"]).output().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start the C compiler `cc`: {error}; install gcc"))
        })?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("cc cannot compile layer.c: {why}")));
        }
        Ok(this)
    }

    /// Returns the directory whose files can fail.
    pub fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    /// Empties the directory and the list of calls, for the next trial.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn clear(&self) -> io::Result<()> {
        for name in ["files", "synced"] {
            fs::remove_dir_all(self.dir.join(name))?;
            fs::create_dir(self.dir.join(name))?;
        }
        match fs::remove_file(self.trace()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the environment variables for the process: with a fault at the call of this number,
    /// counted from 1, or without one.
    pub fn variables(&self, fault: Option<(usize, Fault)>) -> Vec<(String, OsString)> {
        let set = |name: &str, value: OsString| (format!("FAULTY_FILES_{name}"), value);
        let mut variables = vec![
            ("LD_PRELOAD".to_owned(), self.dir.join("layer.so").into()),
            set("BELOW", self.files().into()),
            set("TRACE", self.trace().into()),
        ];
        if let Some((at, fault)) = fault {
            variables.push(set("AT", at.to_string().into()));
            let settings = fault.settings();
            variables.extend(settings.into_iter().map(|(name, value)| set(name, value.to_string().into())));
            if fault == Fault::PowerLoss {
                variables.push(set("SYNCED", self.dir.join("synced").into()));
            }
        }
        variables
    }

    /// Returns the calls of processes since [`clear`](Self::clear), in order.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn calls(&self) -> io::Result<Vec<FileCall>> {
        let text = match fs::read_to_string(self.trace()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let call = |line: &str| {
            let rest = line.strip_prefix("! ");
            FileCall { is_faulty: rest.is_some(), line: rest.unwrap_or(line).to_owned() }
        };
        Ok(text.lines().map(call).collect())
    }

    /// Simulates a loss of power, once the process has ended: each file is as it was at its last
    /// sync, and empty if it was never synced.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn lose_power(&self) -> io::Result<()> {
        let mut directories = vec![self.files()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory)? {
                let (path, about) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
                let synced = self.dir.join("synced").join(about.ino().to_string());
                match about.file_type() {
                    kind if kind.is_dir() => directories.push(path),
                    kind if !kind.is_file() => {}
                    // Shared memory of processes.
                    _ if path.to_string_lossy().ends_with("-shm") => fs::remove_file(path)?,
                    _ if synced.exists() => fs::write(path, fs::read(synced)?)?,
                    _ => fs::write(path, "")?,
                }
            }
        }
        Ok(())
    }

    fn trace(&self) -> PathBuf {
        self.dir.join("calls")
    }
}
