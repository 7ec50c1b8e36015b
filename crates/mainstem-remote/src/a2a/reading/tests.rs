//! What a reading shows.
