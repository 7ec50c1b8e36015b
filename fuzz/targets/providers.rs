//! Every provider's decoder, over HTTP on the loopback: where the reads end changes nothing, and an
//! answer ends in one way.

mod server;

use std::sync::{Arc, LazyLock};

use futures_util::StreamExt;
use mainstem::{
    model::{Model, ModelDelta, ModelRequest},
    prelude::Message,
    provider::{PROVIDERS, Setup, provider},
};

use self::server::{Reply, Server};
use crate::{fuzz, input::Input};

/// A provider, and the server that it asks.
struct Provider {
    model: Arc<dyn Model>,
    /// Asked for refusals only: a provider remembers what a server refused.
    refused: Arc<dyn Model>,
    server: Server,
    media_type: &'static str,
}

impl Provider {
    fn new(name: &str, media_type: &'static str) -> Self {
        let (row, server) = (provider(name).unwrap(), Server::start());
        let var = |name: &str| (name == row.base_url).then(|| server.url.clone());
        let model = || row.bare_model("m", &Setup::new(&var)).unwrap();
        let (model, refused) = (model(), model());
        Self { model, refused, server, media_type }
    }

    /// What the model is heard to say, and the error that ends it.
    fn heard(&self, model: &Arc<dyn Model>, reply: Reply) -> Vec<Result<ModelDelta, String>> {
        let messages = vec![Arc::new(Message::user("go"))];
        let request = ModelRequest { messages, ..ModelRequest::default() };
        let deltas = self.server.answer(reply, model.stream(request).collect::<Vec<_>>());
        deltas.into_iter().map(|delta| delta.map_err(|error| format!("{error:?}"))).collect()
    }

    /// The corpus has answers that are read to their end, not only errors.
    fn assert_reached(&self, target: &str) {
        let heard = crate::corpus::read(target).into_iter().flat_map(|(_, bytes)| {
            let (status, media_type, pieces) = (200, self.media_type, vec![bytes]);
            self.heard(&self.model, Reply { status, media_type, pieces })
        });
        let heard: Vec<_> = heard.flatten().collect();
        let has = |test: fn(&ModelDelta) -> bool| heard.iter().any(test);
        assert!(has(|delta| matches!(delta, ModelDelta::Text(_))), "no text in {heard:?}");
        assert!(has(|delta| matches!(delta, ModelDelta::CallStart { .. })), "no call in {heard:?}");
        assert!(has(|delta| matches!(delta, ModelDelta::Stop(_))), "no end in {heard:?}");
    }

    fn check(&self, input: &Input) {
        let pieces: Vec<_> = input.pieces().map(<[u8]>::to_vec).collect();
        let whole = || vec![input.bytes.clone()];
        for media_type in [self.media_type, "application/json"] {
            let expected = self.heard(&self.model, Reply { status: 200, media_type, pieces: whole() });
            assert_ended(&expected);
            let heard = self.heard(&self.model, Reply { status: 200, media_type, pieces: pieces.clone() });
            assert_eq!(heard, expected, "{media_type}");
        }
        let refusal = Reply { status: 400, media_type: "application/json", pieces };
        let heard = self.heard(&self.refused, refusal);
        assert!(matches!(&*heard, [Err(_)]), "a refusal is one error: {heard:?}");
    }
}

/// An answer ends with the reason why it stopped or with one error, and says neither before.
fn assert_ended(heard: &[Result<ModelDelta, String>]) {
    let is_end = |delta: &Result<ModelDelta, String>| matches!(delta, Err(_) | Ok(ModelDelta::Stop(_)));
    let ends: Vec<_> = heard.iter().map(is_end).collect();
    assert!(ends.last().is_some_and(|last| *last), "no end: {heard:?}");
    assert_eq!(ends.iter().filter(|is_end| **is_end).count(), 1, "two ends: {heard:?}");
}

const EVENTS: &str = "text/event-stream";

/// Declares a target for each vendor, by its name in the facade's table.
macro_rules! vendors {
    ($($name:ident: $media_type:expr,)*) => {
        $(
            #[test]
            fn $name() {
                static VENDOR: LazyLock<Provider> =
                    LazyLock::new(|| Provider::new(stringify!($name), $media_type));
                VENDOR.assert_reached(stringify!($name));
                fuzz!(crate::corpus::read(stringify!($name)), |input| VENDOR.check(input));
            }
        )*

        #[test]
        fn each_vendor_is_a_target() {
            // The others have one of the same decoders.
            let own = PROVIDERS.iter().filter(|vendor| vendor.has_own_api());
            let vendors: Vec<_> = own.map(|vendor| vendor.name).collect();
            assert_eq!(vendors, [$(stringify!($name)),*]);
        }
    };
}

vendors! {
    openai: EVENTS,
    anthropic: EVENTS,
    gemini: EVENTS,
    ollama: "application/x-ndjson",
    responses: EVENTS,
}
