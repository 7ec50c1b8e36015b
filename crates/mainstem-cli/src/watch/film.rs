//! Events that can be shown at any position: a fold with copies at some positions. Pure.

use mainstem_event::{AgentEvent, Timestamp};

use crate::progress::{glyphs::Glyphs, live::tree::Tree};

/// The most copies. Beyond them every second one is dropped, so that any position is as far from a
/// copy as a small part of the whole.
const COPIES: usize = 64;

/// The events between two copies at first.
const EVERY: usize = 512;

/// Events, and the state at a position between them.
pub(super) struct Film {
    events: Vec<AgentEvent>,
    /// How many events are applied.
    at: usize,
    tree: Tree,
    /// Positions with the state there, in order; the first is the beginning.
    copies: Vec<(usize, Tree)>,
    every: usize,
}

impl Film {
    pub(super) fn new(glyphs: Glyphs) -> Self {
        let tree = Tree::new(glyphs);
        Self { events: Vec::new(), at: 0, copies: vec![(0, tree.clone())], tree, every: EVERY }
    }

    /// Adds an event at the end; the position stays.
    pub(super) fn push(&mut self, event: AgentEvent) {
        self.events.push(event);
    }

    /// Returns the number of the last event; 0 if there is none.
    pub(super) fn last_seq(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq)
    }

    /// Goes to a position, at most to the end.
    pub(super) fn seek(&mut self, to: usize) {
        let to = to.min(self.events.len());
        let nearest = self.copies.partition_point(|(at, _)| *at <= to) - 1;
        let (at, tree) = &self.copies[nearest];
        if to < self.at || *at > self.at {
            (self.at, self.tree) = (*at, tree.clone());
        }
        while self.at < to {
            self.tree.event(&self.events[self.at]);
            self.at += 1;
            if self.at.is_multiple_of(self.every)
                && self.copies.last().is_some_and(|(last, _)| *last < self.at)
            {
                self.copy();
            }
        }
    }

    fn copy(&mut self) {
        self.copies.push((self.at, self.tree.clone()));
        if self.copies.len() > COPIES {
            self.every *= 2;
            self.copies.retain(|(at, _)| at.is_multiple_of(self.every));
        }
    }

    /// Returns how many events are applied.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the events up to the position.
    pub(super) fn shown(&self) -> &[AgentEvent] {
        &self.events[..self.at]
    }

    /// Returns the event behind the position.
    pub(super) fn next(&self) -> Option<&AgentEvent> {
        self.events.get(self.at)
    }

    /// Returns the time of the last event that is applied, and that of the first event.
    pub(super) fn times(&self) -> Option<(Timestamp, Timestamp)> {
        let first = self.events.first()?.at;
        Some((self.shown().last().map_or(first, |event| event.at), first))
    }

    /// Returns the position at a part of the record, from 0 to 1.
    pub(super) fn part(&self, part: f64) -> usize {
        (part.clamp(0.0, 1.0) * self.events.len() as f64).round() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::fixture;

    fn state(tree: &Tree) -> serde_json::Value {
        serde_json::to_value(tree.fleet()).unwrap()
    }

    #[test]
    fn each_position_is_the_fold_of_the_events_before_it() {
        let events = fixture::demo();
        let mut film = Film::new(Glyphs::UNICODE);
        film.every = 4;
        events.iter().cloned().for_each(|event| film.push(event));
        let jumps = [events.len(), 0, 7, 8, 9, 3, 150, 149, 20, events.len() + 9, 1];
        for to in jumps {
            film.seek(to);
            let mut tree = Tree::new(Glyphs::UNICODE);
            events.iter().take(to).for_each(|event| tree.event(event));
            assert_eq!(state(film.tree()), state(&tree), "at {to}");
            assert_eq!(film.at(), to.min(events.len()));
        }
        assert!(film.copies.len() <= COPIES);
        assert!(film.every > 4, "copies were dropped");
    }
}
