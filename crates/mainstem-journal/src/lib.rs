//! Durable records behind session logs.
