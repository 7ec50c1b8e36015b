//! Data that is stored beside the events, for protocols that know data in a message or at an
//! address.

use std::borrow::Cow;

use mainstem_event::AgentEvent;
use mainstem_message::{ContentBlock, DataSource};

/// Returns a block of an event with the path of its data, if that is stored.
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
