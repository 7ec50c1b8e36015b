//! The frames of a live stream as bytes.

use bytes::Bytes;
use mainstem::{
    encode::{Frame, RETRY},
    event::AgentEvent,
    message::TenantName,
};
use mainstem_api::{LiveFrame, StreamForm};
use serde_json::json;

use crate::{large, prefix::Prefix};

/// Encodes frames in a form. Links in large events begin with the prefix.
pub(super) struct Frames {
    form: StreamForm,
    prefix: Prefix,
    has_begun: bool,
}

impl Frames {
    pub(super) fn new(form: StreamForm, prefix: Prefix) -> Self {
        Self { form, prefix, has_begun: false }
    }

    /// Returns what comes before all frames; empty after the first call.
    pub(super) fn begin(&mut self) -> Bytes {
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        match self.form {
            StreamForm::Sse if !has_begun => Frame::default().with_retry(RETRY).encode(),
            _ => Bytes::new(),
        }
    }

    pub(super) fn of(&self, frame: &LiveFrame) -> Bytes {
        self.frame(frame.name(), &json!(frame).to_string())
    }

    /// Encodes an event, whose long texts are cut as on other streams. A path to an event of
    /// another tenant would lead to a session of the reader's own.
    pub(super) fn of_event(&self, tenant: Option<&TenantName>, event: &AgentEvent) -> Bytes {
        let prefix = tenant.is_none().then_some(&*self.prefix.0);
        let event = large::json(&event.without_spec(), prefix);
        let tenant = tenant.map(|name| format!(r#""tenant":{},"#, json!(name))).unwrap_or_default();
        self.frame("event", &format!(r#"{{"type":"event",{tenant}"event":{event}}}"#))
    }

    pub(super) fn keep_alive(&self) -> Bytes {
        match self.form {
            StreamForm::Sse => Frame::comment("still here").encode(),
            StreamForm::Ndjson => Bytes::from_static(b"\n"),
        }
    }

    fn frame(&self, name: &str, json: &str) -> Bytes {
        match self.form {
            StreamForm::Sse => Frame::data(json).with_event(name).encode(),
            StreamForm::Ndjson => format!("{json}\n").into(),
        }
    }
}
