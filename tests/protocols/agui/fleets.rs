//! Streams of random fleets, checked by the official schemas and verifier.
