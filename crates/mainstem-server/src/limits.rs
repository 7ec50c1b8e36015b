//! The limits of a server, for the page of limits. Each default is read from the place where it is
//! applied.

use std::time::Duration;

use mainstem::journal::MAX_WAITING_DATA;
use mainstem_api::MAX_DATA;

use crate::{
    app::{BODIES, READERS, REQUESTS},
    body::{DATA_AT_ONCE, DATA_TIMEOUT, MAX, MAX_UNKNOWN, READ_TIMEOUT, SMALL},
    capacity::{CONNECTIONS, GUESTS, SESSIONS},
    connection::GUEST_REQUESTS,
    data::MAX_REFERENCES,
    idempotency,
    jobs::MAX_JOBS,
    large,
    listen::{HEADER_BYTES, HEADERS, WRITES},
    live::FOLLOWED,
    protocols::{MAX_CONFIGS, MAX_TASKS},
    runs::MAX_WAIT,
    server::DEFAULTS,
};

/// A bound on what callers send and hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// What is bounded, and in brackets where an application or operator can change it.
    pub what: &'static str,
    /// The default, with its unit.
    pub default: String,
    /// What happens beyond it.
    pub beyond: &'static str,
    /// The test that goes beyond it.
    pub test: &'static str,
}

/// The bounds of a server.
#[expect(clippy::too_many_lines, reason = "a table is as long as it is")]
pub fn bounds() -> Vec<Bound> {
    let row = |what, default: String, beyond, test| Bound { what, default, beyond, test };
    vec![
        row(
            "runs, queued ones included (`Builder::with_max_runs`)",
            DEFAULTS.runs.to_string(),
            "429 `too_many_runs`",
            "there_is_only_so_much_room",
        ),
        row(
            "open sessions (`Builder::with_max_sessions`)",
            format!("{}, and half of the files that may be open", SESSIONS.1),
            "the least recently used idle one is closed; 429 `too_many_sessions` if none is idle",
            "the_idlest_sessions_are_closed_when_there_are_too_many",
        ),
        row(
            "readers of a session (`Builder::with_max_readers`)",
            DEFAULTS.readers_per_session.to_string(),
            "429 `too_many_readers`",
            "there_is_only_so_much_room",
        ),
        row(
            "sessions of a live stream",
            FOLLOWED.to_string(),
            "others follow as these become idle; `summary` has the number of all",
            "a_live_stream_has_so_many_sessions",
        ),
        row("readers in all", READERS.to_string(), "429 `too_many_readers`", "readers_have_a_bound_in_all"),
        row(
            "connections whose caller is known",
            format!("{}, and a quarter of the files that may be open", CONNECTIONS.1),
            "429 `too_many_connections`",
            "one_tenant_cannot_take_the_bodies_and_connections_of_another",
        ),
        row(
            "connections without a token",
            format!("{}, and an eighth of the files; half of them from one address", GUESTS.1),
            "the oldest is closed",
            "the_oldest_guest_makes_room_and_callers_stay",
        ),
        row(
            "requests without a token on one connection",
            GUEST_REQUESTS.to_string(),
            "the connection is closed",
            "a_guest_is_answered_so_often",
        ),
        row(
            "requests of a tenant in progress",
            REQUESTS.to_string(),
            "they wait",
            "a_tenant_has_a_fixed_number_of_permits",
        ),
        row(
            "bodies that arrive, and large ones that wait",
            format!("{BODIES}; those of more than {} are large", bytes(SMALL)),
            "429 `too_many_bodies`",
            "one_tenant_cannot_take_the_bodies_and_connections_of_another",
        ),
        row("a body", bytes(MAX), "413 `body_too_large`", "every_hostile_request_is_answered_with_its_code"),
        row(
            "a body without a token",
            bytes(MAX_UNKNOWN),
            "413 `body_too_large`",
            "a_body_without_a_token_is_small",
        ),
        row(
            "data of a message",
            bytes(MAX_DATA),
            "413 `body_too_large`",
            "data_that_can_t_be_stored_or_found_is_refused",
        ),
        row(
            "data of a tenant whose sessions have not begun",
            bytes(MAX_WAITING_DATA as usize),
            "429 `too_much_data`",
            "too_much_data_waits_for_no_session",
        ),
        row(
            "references to data in an input, and their bytes",
            format!("{MAX_REFERENCES}, {}", bytes(MAX_DATA)),
            "422 `bad_body`",
            "an_input_refers_to_so_much_data",
        ),
        row(
            "the time to send data",
            seconds(DATA_TIMEOUT),
            "408 `body_too_slow`",
            "a_body_has_to_come_in_time",
        ),
        row(
            "data that is sent at once",
            format!("{DATA_AT_ONCE}, and one of each tenant"),
            "it waits",
            "data_of_a_tenant_is_read_one_by_one",
        ),
        row(
            "the time to send a body",
            seconds(READ_TIMEOUT),
            "408 `body_too_slow`",
            "a_body_has_to_come_in_time",
        ),
        row("headers", bytes(HEADER_BYTES), "431", "headers_have_a_bound"),
        row(
            "the time to send headers",
            seconds(HEADERS),
            "the connection is closed",
            "a_client_that_is_slow_to_send_headers_is_disconnected",
        ),
        row(
            "the time to read an answer",
            seconds(WRITES),
            "the connection is closed",
            "a_client_that_does_not_read_is_disconnected",
        ),
        row(
            "an event in a stream",
            bytes(large::MAX),
            "its texts are cut; it has the path of the whole event",
            "a_large_event_is_cut_in_a_stream_and_whole_by_itself",
        ),
        row(
            "an `Idempotency-Key`",
            format!("{} characters", idempotency::MAX_KEY),
            "400 `bad_idempotency_key`",
            "fifty_who_ask_with_one_key_get_one_run",
        ),
        row(
            "jobs of a tenant that are not over",
            MAX_JOBS.to_string(),
            "429 `too_many_jobs`",
            "a_tenant_has_only_so_many_jobs",
        ),
        row(
            "tasks of A2A with push notifications",
            MAX_TASKS.to_string(),
            "429, in the form of the protocol",
            "tasks_with_notifications_have_a_bound",
        ),
        row(
            "configurations of push notifications of a task",
            MAX_CONFIGS.to_string(),
            "they are refused",
            "notifications_stay_within_reach_and_bounds",
        ),
        row("`Prefer: wait`", seconds(MAX_WAIT), "the answer is 202", "a_wait_ends_after_its_bound"),
    ]
}

fn bytes(count: usize) -> String {
    match count {
        _ if count.is_multiple_of(1 << 20) => format!("{} MiB", count >> 20),
        _ if count.is_multiple_of(1 << 10) => format!("{} KiB", count >> 10),
        _ => format!("{count} bytes"),
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}
