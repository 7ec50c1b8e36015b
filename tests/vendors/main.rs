//! One contract for every vendor's API: the same script gives the same events, and so does the same
//! fault.
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

mod api;
mod caching;
mod connections;
mod contract;
mod faults;
mod models;
mod pause;
mod pings;
mod rates;
mod resume;
mod secrets;
mod server_tools;
mod services;
mod unreadable;
