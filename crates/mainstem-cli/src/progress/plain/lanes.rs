//! The order of agents' lines: one lane writes at a time, so that the lines of an agent stay
//! together, and every lane is next after a bounded wait.

use std::collections::VecDeque;

use mainstem_event::Timestamp;

/// After this silence of the holder, a waiting lane replaces it, in milliseconds.
const SILENCE: u64 = 1_000;
/// After this wait, a lane replaces a holder that keeps writing …
const MAX_WAIT: u64 = 5_000;
/// … unless the holder has been one for less than this.
const MINIMUM: u64 = 3_000;

/// The lanes of all agents, with the lines that wait; the holder is the lane that writes.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    lanes: Vec<Lane<T>>,
    holder: Option<usize>,
    since: Timestamp,
    last_line: Timestamp,
}

#[derive(Debug)]
struct Lane<T> {
    waiting: VecDeque<(Timestamp, T)>,
    is_over: bool,
}

impl<T> Lanes<T> {
    pub(super) fn new() -> Self {
        Self { lanes: Vec::new(), holder: None, since: Timestamp::default(), last_line: Timestamp::default() }
    }

    /// Adds a line of a lane.
    pub(super) fn say(&mut self, lane: usize, now: Timestamp, line: T) {
        let missing = (lane + 1).saturating_sub(self.lanes.len());
        self.lanes.extend((0..missing).map(|_| Lane { waiting: VecDeque::new(), is_over: false }));
        self.lanes[lane].waiting.push_back((now, line));
        self.lanes[lane].is_over = false;
    }

    /// Ends a lane, until its next line.
    pub(super) fn leave(&mut self, lane: usize) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.is_over = true;
        }
    }

    /// Returns the next line that is due.
    pub(super) fn next(&mut self, now: Timestamp) -> Option<T> {
        if !self.can_continue(now) {
            self.holder = Some(self.longest_waiting()?.0);
            self.since = now;
        }
        let line = self.lanes.get_mut(self.holder?)?.waiting.pop_front()?.1;
        self.last_line = now;
        Some(line)
    }

    /// Returns the next line, due or not; those of one lane together.
    pub(super) fn rest(&mut self) -> Option<T> {
        let holder = self.holder.filter(|lane| !self.lanes[*lane].waiting.is_empty());
        let lane = holder.or_else(|| self.longest_waiting().map(|(lane, _)| lane))?;
        self.holder = Some(lane);
        self.lanes[lane].waiting.pop_front().map(|(_, line)| line)
    }

    fn can_continue(&self, now: Timestamp) -> bool {
        let Some(holder) = self.holder else { return false };
        let Lane { waiting, is_over } = &self.lanes[holder];
        if waiting.is_empty() {
            return !is_over && now.millis_since(self.last_line) < SILENCE;
        }
        let longest_wait = self.longest_waiting().map_or(0, |(_, since)| now.millis_since(since));
        longest_wait < MAX_WAIT || now.millis_since(self.since) < MINIMUM
    }

    /// Returns the lane, besides the holder, that has waited longest.
    fn longest_waiting(&self) -> Option<(usize, Timestamp)> {
        let lanes = self.lanes.iter().enumerate().filter(|(lane, _)| Some(*lane) != self.holder);
        lanes
            .filter_map(|(index, lane)| Some((index, lane.waiting.front()?.0)))
            .min_by_key(|(_, since)| *since)
    }
}

#[cfg(test)]
mod tests;
