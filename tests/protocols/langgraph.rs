//! LangGraph: its development server runs children of ours, and its SDKs read our server.

mod proxy;
mod remote;
mod served;
