//! The reason-act loop and its owned stream.
