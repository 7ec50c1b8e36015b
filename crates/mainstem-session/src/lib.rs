//! The living parts: session, run, and the handle to steer it.
