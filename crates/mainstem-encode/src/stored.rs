//! Stored data, as protocols represent it that have no references.

use std::borrow::Cow;

use mainstem_event::AgentEvent;
use mainstem_message::{ContentBlock, DataSource};

/// Returns a block of an event, with a URL in the place of a reference to stored data.
pub(crate) fn addressed<'a>(block: &'a ContentBlock, event: &AgentEvent) -> Cow<'a, ContentBlock> {
    match block {
        ContentBlock::Data { media_type, source: DataSource::Stored(data), opaque } => {
            let source = DataSource::Url(data.path(event.session_id()));
            let (media_type, opaque) = (media_type.clone(), opaque.clone());
            Cow::Owned(ContentBlock::Data { media_type, source, opaque })
        }
        block => Cow::Borrowed(block),
    }
}
