//! Progress that is put aside while something else has the terminal.

use mainstem_event::{AgentEvent, Timestamp};

use super::Progress;
use crate::approval::Question;

/// Progress that draws nothing while it is put aside. Events count nevertheless, and notes are
/// shown afterwards.
pub(crate) struct PutAside {
    inner: Box<dyn Progress>,
    /// The notes since then.
    notes: Option<Vec<String>>,
}

impl PutAside {
    /// Creates it as shown.
    pub(crate) fn new(inner: Box<dyn Progress>) -> Self {
        Self { inner, notes: None }
    }

    /// Draws nothing from now on.
    pub(crate) fn put_aside(&mut self) {
        self.notes.get_or_insert_default();
    }

    /// Draws again, with the notes since it was put aside; below what is there if the last frame
    /// has moved, because the shell has written below it, or the terminal has another size.
    pub(crate) fn take_back(&mut self, is_elsewhere: bool) {
        if is_elsewhere {
            self.inner.continued();
        }
        self.notes.take().into_iter().flatten().for_each(|note| self.inner.note(&note));
    }

    pub(crate) fn is_aside(&self) -> bool {
        self.notes.is_some()
    }

    /// Returns the progress, if it is shown.
    fn shown(&mut self) -> Option<&mut dyn Progress> {
        if self.is_aside() { None } else { Some(&mut *self.inner) }
    }
}

impl Progress for PutAside {
    fn event(&mut self, event: &AgentEvent) {
        self.inner.event(event);
    }

    fn tick(&mut self, now: Timestamp) {
        self.shown().into_iter().for_each(|shown| shown.tick(now));
    }

    fn note(&mut self, text: &str) {
        match &mut self.notes {
            Some(notes) => notes.push(text.to_owned()),
            None => self.inner.note(text),
        }
    }

    fn below_echo(&mut self) {
        self.shown().into_iter().for_each(Progress::below_echo);
    }

    fn ask(&mut self, question: Option<&Question>, typed: &str) {
        self.shown().into_iter().for_each(|shown| shown.ask(question, typed));
    }

    fn view(&mut self, question: &Question) {
        self.shown().into_iter().for_each(|shown| shown.view(question));
    }

    fn draws_typed(&self) -> bool {
        self.inner.draws_typed()
    }

    fn continued(&mut self) {
        self.shown().into_iter().for_each(Progress::continued);
    }

    fn finish(&mut self, now: Timestamp) {
        self.shown().into_iter().for_each(|shown| shown.finish(now));
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use super::*;

    /// Writes down what it shows.
    struct Shows(Rc<RefCell<Vec<String>>>);

    impl Progress for Shows {
        fn event(&mut self, event: &AgentEvent) {
            self.0.borrow_mut().push(format!("event {}", event.seq));
        }

        fn tick(&mut self, _: Timestamp) {
            self.0.borrow_mut().push("tick".to_owned());
        }

        fn continued(&mut self) {
            self.0.borrow_mut().push("continued".to_owned());
        }

        fn note(&mut self, text: &str) {
            self.0.borrow_mut().push(text.to_owned());
        }

        fn finish(&mut self, _: Timestamp) {
            self.0.borrow_mut().push("finish".to_owned());
        }
    }

    #[test]
    fn events_count_and_notes_wait_while_it_is_aside() {
        let shown = Rc::<RefCell<Vec<_>>>::default();
        let mut progress = PutAside::new(Box::new(Shows(shown.clone())));
        progress.note("before");
        progress.put_aside();
        progress.tick(Timestamp::default());
        progress.note("meanwhile");
        progress.event(&crate::progress::fixture::demo()[0]);
        assert_eq!(*shown.borrow(), ["before", "event 1"]);
        progress.take_back(false);
        progress.tick(Timestamp::default());
        progress.put_aside();
        progress.note("again");
        progress.take_back(true);
        progress.finish(Timestamp::default());
        let expected = ["before", "event 1", "meanwhile", "tick", "continued", "again", "finish"];
        assert_eq!(*shown.borrow(), expected);
    }
}
