//! LangGraph: its development server runs children of ours, and its SDKs read our server.

mod remote;
mod served;
