//! Limits of the resources of a command.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::size;

/// The limits of one command with all its processes.
///
/// ```
/// use mainstem_guard::Limits;
///
/// let mut limits = Limits::default();
/// limits.set("memory", "512MiB")?;
/// assert_eq!(limits.memory, 512 << 20);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// CPU time, of all processes together. Default 30 minutes.
    pub cpu: Duration,
    /// Memory in bytes, of all processes together, without what files back; what several share
    /// counts once. Default 4 GiB.
    pub memory: u64,
    /// Bytes of each file that is written. Default 2 GiB.
    pub file_size: u64,
    /// Processes at once. Default 512.
    pub processes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cpu: Duration::from_secs(30 * 60), memory: 4 << 30, file_size: 2 << 30, processes: 512 }
    }
}

/// One of the [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::cpu`]
    Cpu,
    /// [`Limits::memory`]
    Memory,
    /// [`Limits::file_size`]
    FileSize,
    /// [`Limits::processes`]
    Processes,
}

impl Limit {
    const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::FileSize, Self::Processes];

    /// Returns the name in flags and configuration files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::FileSize => "file_size",
            Self::Processes => "processes",
        }
    }

    /// Returns the limit that a signal stands for, by which the kernel ends a process beyond it.
    pub fn of_signal(signal: i32) -> Option<Self> {
        of_signal(signal)
    }
}

#[cfg(unix)]
fn of_signal(signal: i32) -> Option<Limit> {
    use rustix::process::Signal;
    match Signal::from_named_raw(signal)? {
        Signal::XCPU => Some(Limit::Cpu),
        Signal::XFSZ => Some(Limit::FileSize),
        _ => None,
    }
}

#[cfg(not(unix))]
fn of_signal(_: i32) -> Option<Limit> {
    None
}

/// The resources that a command uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) memory: u64,
    pub(crate) processes: u32,
}

impl Limits {
    /// Sets the limit of this name: `cpu` to a number of seconds or `90s`, `30m`, `1h`, `memory`
    /// and `file_size` to bytes or `512MiB`, `processes` to a number.
    ///
    /// # Errors
    /// What is wrong with the name or value, with the accepted ones.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some(limit) = Limit::ALL.into_iter().find(|limit| limit.name() == name) else {
            let all = Limit::ALL.map(Limit::name).join("`, `");
            return Err(format!("unknown limit `{name}`, expected one of `{all}`"));
        };
        let wrong =
            |example| format!("`{value}` is not a value for the limit `{name}`; write it like {example}");
        let positive = |number: u64| (number > 0).then_some(number);
        let bytes = || size::parse(value).and_then(positive).ok_or_else(|| wrong("`512MiB`"));
        match limit {
            Limit::Cpu => {
                self.cpu = seconds(value)
                    .and_then(positive)
                    .map(Duration::from_secs)
                    .ok_or_else(|| wrong("`90s` or `30m`"))?;
            }
            Limit::Memory => self.memory = bytes()?,
            Limit::FileSize => self.file_size = bytes()?,
            Limit::Processes => {
                self.processes =
                    value.parse().ok().filter(|number| *number > 0).ok_or_else(|| wrong("`512`"))?;
            }
        }
        Ok(())
    }

    /// Returns the first limit that the usage exceeds.
    pub(crate) fn reached(&self, usage: &Usage) -> Option<Limit> {
        if usage.processes > self.processes {
            Some(Limit::Processes)
        } else if usage.memory > self.memory {
            Some(Limit::Memory)
        } else if usage.cpu > self.cpu {
            Some(Limit::Cpu)
        } else {
            None
        }
    }

    /// Returns the message about a limit that was reached.
    pub fn message(&self, limit: Limit) -> String {
        let (what, most) = match limit {
            Limit::Cpu => ("CPU time", format!("{} s", self.cpu.as_secs())),
            Limit::Memory => ("memory", size::show(self.memory)),
            Limit::FileSize => ("a file's size", size::show(self.file_size)),
            Limit::Processes => ("processes", format!("{} at once", self.processes)),
        };
        format!("the limit of {what}, {most}, was reached")
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, file_size) = (size::show(self.memory), size::show(self.file_size));
        let (cpu, processes) = (self.cpu.as_secs(), self.processes);
        write!(f, "CPU time {cpu} s, memory {memory}, a file {file_size}, {processes} processes")
    }
}

/// Parses `90`, `90s`, `30m`, `2h`.
fn seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, factor) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1),
        b'm' => (&text[..text.len() - 1], 60),
        b'h' => (&text[..text.len() - 1], 60 * 60),
        _ => (text, 1),
    };
    number.trim().parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests;
