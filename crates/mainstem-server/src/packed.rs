//! Files that the program contains, compressed by `build.rs`.

use std::io::Read as _;

use flate2::read::GzDecoder;

/// Returns a compressed file of the program.
macro_rules! packed {
    ($name:literal) => {
        $crate::packed::Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")))
    };
}

pub(crate) use packed;

/// A text, in the format of gzip (RFC 1952).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed(&'static [u8]);

impl Packed {
    pub(crate) const fn new(gzip: &'static [u8]) -> Self {
        Self(gzip)
    }

    /// Returns it as it is.
    #[cfg(feature = "page")]
    pub(crate) fn gzip(self) -> bytes::Bytes {
        bytes::Bytes::from_static(self.0)
    }

    /// Returns the text.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        // Never fails: `build.rs` has made it.
        let _ = GzDecoder::new(self.0).read_to_string(&mut text);
        text
    }
}
