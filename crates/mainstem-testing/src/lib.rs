//! Test kit: fake clock, counted ids, the laws, a timeline printer. Dev-dependency only.
