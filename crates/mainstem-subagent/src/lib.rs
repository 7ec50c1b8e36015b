//! Agents calling agents: spawn, fan out, send, list.
