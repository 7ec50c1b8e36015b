//! The forms in which a server streams events.

/// Declares the forms, and the list of all of them.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident = $media_type:literal $(or $other:literal)*;)*) => {
        /// The form of a stream of events. A server has an encoder for each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(clippy::exhaustive_enums, reason = "a server without an encoder for one must not compile")]
        pub enum StreamForm {
            $($(#[$doc])* $name,)*
        }

        impl StreamForm {
            /// All forms, in the order of the document.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the media type of its responses.
            pub fn media_type(self) -> &'static str {
                match self {
                    $(Self::$name => $media_type,)*
                }
            }

            fn of(media_type: &str) -> Option<Self> {
                match media_type {
                    $($media_type $(| $other)* => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

forms! {
    /// Server-sent events.
    Sse = "text/event-stream";
    /// A line of JSON for each event.
    Ndjson = "application/x-ndjson" or "application/jsonl";
}

impl StreamForm {
    /// Returns the first form in an `Accept` header; `None` if it has none.
    ///
    /// ```
    /// use mainstem_api::StreamForm;
    ///
    /// let header = "text/html, application/jsonl;q=0.9";
    /// assert_eq!(StreamForm::accepted(header), Some(StreamForm::Ndjson));
    /// assert_eq!(StreamForm::accepted("*/*"), None);
    /// ```
    pub fn accepted(accept: &str) -> Option<Self> {
        let types = accept.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
        types.into_iter().find_map(Self::of)
    }
}
