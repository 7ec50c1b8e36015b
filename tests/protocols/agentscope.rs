//! AgentScope 2 of PyPI: agents of its service are children of ours.

mod remote;
