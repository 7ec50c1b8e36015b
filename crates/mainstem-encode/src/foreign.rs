//! Events as protocols of others have them: with addresses in the place of references to stored
//! data, and without what is for this harness alone.

use std::borrow::Cow;

use mainstem_event::AgentEvent;
use mainstem_message::{ContentBlock, DataSource};
use serde_json::{Value, json};

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

/// Returns the JSON of an event without the settings of its run, the declaration of its agent, and
/// what a vendor requires back.
pub(crate) fn public(event: &AgentEvent) -> Value {
    let mut json = json!(event.without_spec());
    if let Some(fields) = json.as_object_mut() {
        fields.remove("settings");
    }
    remove_opaque(&mut json);
    json
}

fn remove_opaque(json: &mut Value) {
    match json {
        Value::Object(fields) => {
            fields.remove("opaque");
            for (name, value) in fields {
                // Nothing is left out of what tools and programs wrote. The input of an agent is a
                // list of messages.
                let is_written = name == "value" || (name == "input" && !value.is_array());
                if !is_written {
                    remove_opaque(value);
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(remove_opaque),
        _ => {}
    }
}
