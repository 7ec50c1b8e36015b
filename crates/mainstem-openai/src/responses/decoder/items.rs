//! The items of a response: what has arrived of each, and which block is open.
//!
//! Items are identified by `output_index`; their ids differ between events at [some servers]. What
//! comes in pieces is not read again when it comes whole.
//!
//! [some servers]: https://github.com/vercel/ai/tree/main/packages/openai/src/responses/__fixtures__

use std::borrow::Cow;

use mainstem_http::{Deltas, Output};
use mainstem_message::{Opaque, StopReason};
use mainstem_model::ModelDelta;

use crate::responses::{
    event::{Fragment, Item},
    opaque,
};

/// The items of one response; an item's index here is its slot.
#[derive(Default)]
pub(super) struct Items {
    items: Vec<ItemState>,
    /// The item whose text or thinking came last and may continue.
    open: Option<usize>,
    refused: bool,
    /// Whether an item that comes whole goes on from what was written of it.
    goes_on: bool,
}

#[derive(Default)]
struct ItemState {
    index: u64,
    stage: Stage,
    /// How many bytes of its text were read; those of a template are not counted.
    written: usize,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Stage {
    #[default]
    Begun,
    Calling,
    Ended {
        called: bool,
    },
}

impl Items {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns `true` if an item has text.
    pub(super) fn is_written(&self, index: u64) -> bool {
        self.items.iter().any(|place| place.index == index && place.written > 0)
    }

    /// Returns why a complete response stopped.
    pub(super) fn stop_reason(&self) -> StopReason {
        let is_call =
            |place: &ItemState| matches!(place.stage, Stage::Calling | Stage::Ended { called: true });
        if self.items.iter().any(is_call) {
            StopReason::ToolCalls
        } else if self.refused {
            StopReason::Refusal
        } else {
            StopReason::Stop
        }
    }

    /// Begins an item. From here on a call's id and name are known.
    pub(super) fn begin(&mut self, index: u64, item: &Item, out: &mut Output<'_>) {
        self.items.push(ItemState { index, ..ItemState::default() });
        if item.kind() == "function_call" {
            self.call(self.items.len() - 1, item, out);
        }
    }

    pub(super) fn text(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) {
        let slot = self.slot(fragment.output_index);
        self.write(slot, fragment.delta, ModelDelta::Text, out);
    }

    pub(super) fn refusal(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) {
        self.refused |= !fragment.delta.is_empty();
        self.text(fragment, out);
    }

    pub(super) fn thinking(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) {
        let slot = self.slot(fragment.output_index);
        self.write(slot, fragment.delta, ModelDelta::Thinking, out);
    }

    /// Adds a piece of a call's arguments; ignored without the call, which comes whole then.
    pub(super) fn arguments(&mut self, fragment: Fragment<'_>, out: &mut Output<'_>) {
        let slot = self.slot(fragment.output_index);
        let place = &mut self.items[slot];
        if place.stage == Stage::Calling && !fragment.delta.is_empty() {
            place.written += fragment.delta.len();
            out.push(fragment.delta, |delta| ModelDelta::CallArguments { slot, delta });
        }
    }

    /// Ends an item, with everything that was not streamed before.
    pub(super) fn end(&mut self, index: u64, item: Item, out: &mut Output<'_>) {
        let slot = self.slot(index);
        let called = item.kind() == "function_call";
        match item.kind() {
            "message" => self.end_message(slot, &item, out),
            "reasoning" => self.end_reasoning(slot, item, out),
            "function_call" => self.end_call(slot, &item, out),
            kind if opaque::is_server_tool(kind) => self.end_server_tool(slot, item, out),
            _ => {}
        }
        self.items[slot].stage = Stage::Ended { called };
    }

    /// Ends all items of a response of which a part was streamed, each piece of it counted.
    pub(super) fn complete(&mut self, items: Vec<Item>, out: &mut Output<'_>) {
        self.goes_on = true;
        for (index, item) in (0..).zip(items) {
            if !self.has_ended(index) {
                self.end(index, item, out);
            }
        }
    }

    fn has_ended(&self, index: u64) -> bool {
        self.items.iter().any(|place| place.index == index && matches!(place.stage, Stage::Ended { .. }))
    }

    /// Returns how many bytes at the beginning of an item's text are not read again.
    fn known(&self, slot: usize) -> usize {
        match self.items[slot].written {
            written if written == 0 || self.goes_on => written,
            _ => usize::MAX,
        }
    }

    /// Ends the calls that are open.
    pub(super) fn finish(&mut self, deltas: &mut Deltas) {
        for (slot, place) in self.items.iter_mut().enumerate() {
            if place.stage == Stage::Calling {
                place.stage = Stage::Ended { called: true };
                deltas.push_back(ModelDelta::CallEnd { slot, opaque: Opaque::new() });
            }
        }
    }

    fn end_message(&mut self, slot: usize, item: &Item, out: &mut Output<'_>) {
        let mut known = self.known(slot);
        for (name, text) in item.texts("content") {
            let rest = behind(&mut known, text);
            self.refused |= name == "refusal" && !rest.is_empty();
            self.write(slot, rest.to_owned().into(), ModelDelta::Text, out);
        }
        // The phase is stored with a text block, so an item without text has none.
        let phase = item.field("phase").filter(|_| self.open == Some(slot));
        self.end_block(slot, opaque::phase(phase), out);
    }

    fn end_reasoning(&mut self, slot: usize, item: Item, out: &mut Output<'_>) {
        let summary: Vec<_> = item.texts("summary").map(|(_, text)| text).collect();
        let text: String = if summary.is_empty() {
            item.texts("content").map(|(_, text)| text).collect()
        } else {
            summary.join("\n\n")
        };
        let rest = behind(&mut self.known(slot), &text).to_owned();
        self.write(slot, rest.into(), ModelDelta::Thinking, out);
        self.end_block(slot, opaque::reasoning(item.0), out);
    }

    fn end_call(&mut self, slot: usize, item: &Item, out: &mut Output<'_>) {
        if self.items[slot].stage != Stage::Calling {
            self.call(slot, item, out);
        }
        let arguments = behind(&mut self.known(slot), item.field("arguments").unwrap_or_default());
        if !arguments.is_empty() {
            out.push_whole(ModelDelta::CallArguments { slot, delta: arguments.to_owned() });
        }
        out.push_whole(ModelDelta::CallEnd { slot, opaque: Opaque::new() });
    }

    /// Reports a call of one of the vendor's own tools, and keeps its item in a block of its own.
    fn end_server_tool(&mut self, slot: usize, item: Item, out: &mut Output<'_>) {
        let name = item.kind().trim_end_matches("_call").to_owned();
        let input = ["action", "code"].into_iter().find_map(|field| item.0.get(field)).cloned();
        out.push_whole(ModelDelta::ServerToolCall { name, input: input.unwrap_or_default() });
        self.end_block(slot, opaque::server_tool(item.0), out);
    }

    fn call(&mut self, slot: usize, item: &Item, out: &mut Output<'_>) {
        self.items[slot].stage = Stage::Calling;
        self.open = None;
        let id = item.field("call_id").filter(|id| !id.is_empty()).map(Into::into);
        let name = item.field("name").unwrap_or_default().to_owned();
        out.push_whole(ModelDelta::CallStart { slot, id, name });
    }

    /// Adds text or thinking to an item's block.
    fn write(
        &mut self,
        slot: usize,
        text: Cow<'_, str>,
        delta: fn(String) -> ModelDelta,
        out: &mut Output<'_>,
    ) {
        if text.is_empty() {
            return;
        }
        self.close_others(slot, out);
        self.open = Some(slot);
        self.items[slot].written += text.len();
        out.push(text, delta);
    }

    /// Ends an item's block; creates one if there is none and opaque data to store.
    fn end_block(&mut self, slot: usize, opaque: Opaque, out: &mut Output<'_>) {
        if self.open != Some(slot) && opaque.is_empty() {
            return;
        }
        self.close_others(slot, out);
        self.open = None;
        out.push_whole(ModelDelta::BlockEnd { opaque });
    }

    fn close_others(&mut self, slot: usize, out: &mut Output<'_>) {
        if self.open.take_if(|open| *open != slot).is_some() {
            out.push_whole(ModelDelta::BlockEnd { opaque: Opaque::new() });
        }
    }

    /// Returns the item of an index, announced or not.
    fn slot(&mut self, index: u64) -> usize {
        let is_it = |place: &ItemState| place.index == index && !matches!(place.stage, Stage::Ended { .. });
        self.items.iter().rposition(is_it).unwrap_or_else(|| {
            self.items.push(ItemState { index, ..ItemState::default() });
            self.items.len() - 1
        })
    }
}

/// Returns what of a text follows the bytes that are known, and subtracts its others from those.
fn behind<'t>(known: &mut usize, text: &'t str) -> &'t str {
    let skipped = text.len().min(*known);
    *known -= skipped;
    text.get(skipped..).unwrap_or_default()
}
