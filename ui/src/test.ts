// A recorded session as a test in Rust, which `mainstem_testing::Recording` runs.
// `crates/mainstem-encode/src/test_file.rs` writes the same file.
import type { AgentEvent } from "./fleet/event";
import { lacks, linesOf } from "./fleet/excerpt";

const HEAD = `//! A recorded session: the agents do again what they did. Models, tools and people are played from
//! the record.
//!
//! Dev-dependencies: \`mainstem-testing\` with the feature \`recording\`; \`tokio\` with the features
//! \`macros\`, \`rt\` and \`test-util\`.

use mainstem_testing::Recording;

#[tokio::test(start_paused = true)]
async fn NAME() {
    let recording = Recording::parse(RECORD).unwrap();
    // The recorded agents and tools. To test your own, build a harness with \`recording.model()\` and
    // \`recording.ids()\`.
    let harness = recording.harness().build().unwrap();
    recording.check(&harness).await;
}

const RECORD: &str = r#"
`;

/** Says why a record is not a test; undefined if it is one. */
export function notATest(events: readonly AgentEvent[]): string | undefined {
  const open = new Set<string>();
  for (const event of events) {
    if (event.type === "AGENT_START") open.add(event.replyId ?? "");
    if (event.type === "AGENT_END") open.delete(event.replyId ?? "");
  }
  if (open.size > 0) return "an agent is still running; a test is of runs that have ended";
  return lacks(events) && "a test needs the whole record";
}

/** Writes the test of a session, in pieces. */
export function testOf(session: string, events: readonly AgentEvent[]): string[] {
  return [HEAD.replace("NAME", () => nameOf(session)), ...linesOf(events).map(escaped), `"#;\n`];
}

const nameOf = (session: string): string => `session_${session.replace(/[^a-zA-Z0-9]/gu, "_").toLowerCase()}`;

/** Escapes what could end the literal, and what the compiler refuses in one. */
const escaped = (json: string): string =>
  json.replace(/(?<=")#|[\u202a-\u202e\u2066-\u2069]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
