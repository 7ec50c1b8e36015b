//! The contract with a tool, and the context it runs in.
