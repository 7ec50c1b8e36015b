//! Scripted HTTP model server, bare client, and the rows of quality.md. Not published.
