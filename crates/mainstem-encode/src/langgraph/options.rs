//! What a client asks to be streamed.

use std::collections::BTreeSet;

use super::LangGraphThread;

/// A kind of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StreamMode {
    /// The state after each message.
    Values,
    /// What each node adds to the state.
    Updates,
    /// Messages as they grow, each time as a whole.
    Messages,
    /// Parts of messages, each with its metadata.
    MessagesTuple,
    /// Our events that are no messages, and the parts of results.
    Custom,
}

impl StreamMode {
    /// Every mode.
    pub const ALL: [Self; 5] =
        [Self::Values, Self::Updates, Self::Messages, Self::MessagesTuple, Self::Custom];

    /// Returns its name in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Updates => "updates",
            Self::Messages => "messages",
            Self::MessagesTuple => "messages-tuple",
            Self::Custom => "custom",
        }
    }
}

/// The settings of a stream.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LangGraphOptions {
    /// The modes; a stream without modes has no frames between its first and its last.
    pub modes: BTreeSet<StreamMode>,
    /// Whether agents below the leader are shown, in namespaces.
    pub subgraphs: bool,
    /// The run.
    pub run: String,
    /// The thread.
    pub thread: String,
    /// The assistant.
    pub assistant: String,
    /// The state of the thread before the run.
    pub history: LangGraphThread,
    /// Whether the stream begins with `metadata`, which names the run.
    pub announces: bool,
    /// The last frame that the client has seen.
    pub position: Option<FrameId>,
}

/// The place of a frame in a stream. The last frame of an event has the number of the event as its
/// id; one before has a second number, `12-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameId {
    pub(super) seq: u64,
    pub(super) frame: u64,
}

impl FrameId {
    /// Reads a `Last-Event-ID`; `None` if it is not an id of this server. A negative number is the
    /// beginning, as clients write it.
    pub fn parse(id: &str) -> Option<Self> {
        if id.starts_with('-') && id[1..].bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Self { seq: 0, frame: 0 });
        }
        match id.split_once('-') {
            Some((seq, frame)) => Some(Self { seq: seq.parse().ok()?, frame: frame.parse().ok()? }),
            None => Some(Self { seq: id.parse().ok()?, frame: u64::MAX }),
        }
    }

    /// Returns the number of the event.
    pub fn seq(self) -> u64 {
        self.seq
    }
}

impl LangGraphOptions {
    /// Creates the settings of a stream without modes.
    pub fn new(run: impl Into<String>, thread: impl Into<String>, assistant: impl Into<String>) -> Self {
        Self {
            run: run.into(),
            thread: thread.into(),
            assistant: assistant.into(),
            announces: true,
            ..Self::default()
        }
    }
}
