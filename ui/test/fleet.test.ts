// The reducer agrees with Rust's `FleetState` after every event of the timelines that
// crates/mainstem-event tests.
//
// `MAINSTEM_TIMELINES` names a folder of further ones, which `cargo xtask ui` makes: those of the
// workspace's tests, golden and random.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import type { AgentEvent } from "../src/fleet/event";
import { apply, NO_FLEET, type Places } from "../src/fleet/fleet";

const TESTS = new URL("../../crates/mainstem-event/tests/", import.meta.url);

const read = (path: string): string => readFileSync(new URL(path, TESTS), "utf8");

/** The content of a snapshot, behind its head. */
const snapshot = (name: string): string => read(`snapshots/timelines__${name}.snap`).split("---\n").slice(2).join("---\n");

const events = (text: string): AgentEvent[] =>
  text.trimEnd().split("\n").map((line) => JSON.parse(line) as AgentEvent);

/** JSON with sorted keys, without absent fields. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, field]) => [name, sorted(field)]));
}

/** FNV-1a with 32 bits. */
const hash = (text: string): string =>
  new TextEncoder().encode(text).reduce((sum, byte) => Math.imul(sum ^ byte, 0x01000193) >>> 0, 0x811c9dc5).toString(16).padStart(8, "0");

describe("the state agrees with Rust's after every event", () => {
  test.each([
    ["a_recorded_run", () => read("timelines/demo.ndjson")],
    ["a_steered_session", () => read("timelines/steered.ndjson")],
    ["a_random_session", () => snapshot("random")],
  ])("%s", (name, timeline) => {
    const places: Places = new Map();
    let fleet = NO_FLEET;
    const lines = events(timeline()).map((event) => {
      fleet = apply(fleet, event, places);
      return `${event.seq} ${hash(JSON.stringify(sorted(fleet)))}`;
    });
    const expected = snapshot(name);
    const json = expected.indexOf("{");
    expect(sorted(fleet)).toEqual(sorted(JSON.parse(expected.slice(json))));
    expect(lines).toEqual(expected.slice(0, json).trimEnd().split("\n"));
    expect(lines.length).toBeGreaterThan(300);
  });
});

const folder = process.env.MAINSTEM_TIMELINES;

test.runIf(folder)("the state agrees with Rust's after every event of all timelines of the workspace", () => {
  const files = readdirSync(folder!);
  for (const file of files) {
    const places: Places = new Map();
    let fleet = NO_FLEET;
    for (const line of readFileSync(path.join(folder!, file), "utf8").trimEnd().split("\n")) {
      const event = JSON.parse(line.slice(9)) as AgentEvent;
      fleet = apply(fleet, event, places);
      if (hash(JSON.stringify(sorted(fleet))) !== line.slice(0, 8)) {
        expect.fail(`${file} differs after event ${event.seq}, ${event.type}: ${JSON.stringify(sorted(fleet))}`);
      }
    }
  }
  expect(files.length).toBeGreaterThan(300);
}, 300_000);
