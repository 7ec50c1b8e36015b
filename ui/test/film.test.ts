// The record in the browser: the view at any event, and what a person reads of an agent.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { AgentEvent } from "../src/fleet/event";
import { indexed } from "../src/fleet/fleet";
import { Film } from "../src/fleet/film";
import type { CallPart, Lane } from "../src/fleet/lane";
import { apply, callOf, isRunning, NO_VIEW, ofSnapshot, type View } from "../src/fleet/view";

const TIMELINES = new URL("../../crates/mainstem-event/tests/timelines/", import.meta.url);

const read = (name: string): AgentEvent[] =>
  readFileSync(new URL(`${name}.ndjson`, TIMELINES), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line) as AgentEvent);

function played(events: readonly AgentEvent[], base = NO_VIEW): View {
  const places = indexed(base.fleet.agents);
  return events.reduce((view, event) => apply(view, event, places), base);
}

const laneOf = (view: View, label: string): Lane =>
  view.lanes[view.fleet.agents.findIndex((agent) => agent.source?.label === label)]!;

test("every event of a long record is the same from a checkpoint as from the beginning", () => {
  const short = read("demo");
  // The same run again and again, numbered on, is a record with several checkpoints.
  const events = [0, 1, 2, 3].flatMap((round) => short.map((event) => ({ ...event, seq: event.seq + round * short.length })));
  const film = new Film(NO_VIEW);
  events.forEach((event) => film.push(event));
  for (const seq of [0, 1, 250, 499, 500, 501, 999, 1000, events.length]) {
    expect(film.at(seq)).toEqual(played(events.slice(0, seq)));
  }
  expect(film.at(events.length)).toEqual(film.now);
});

test("an event that comes twice changes nothing", () => {
  const film = new Film(NO_VIEW);
  const events = read("demo").slice(0, 100);
  [...events, ...events.slice(50)].forEach((event) => film.push(event));
  expect(film.events.length).toBe(100);
  expect(film.now).toEqual(played(events));
});

test("a record can begin at a snapshot", () => {
  const events = read("demo");
  const snapshot = played(events.slice(0, 200)).fleet;
  const film = new Film(ofSnapshot(snapshot));
  events.forEach((event) => film.push(event));
  expect(film.first).toBe(200);
  expect(film.now.fleet).toEqual(played(events).fleet);
  expect(film.at(300).fleet).toEqual(played(events.slice(0, 300)).fleet);
  // Before its first event there is nothing to show.
  expect(film.at(10).fleet.seq).toBe(200);
});

test("a lane has the texts, the calls with their results, and the call that spawned it", () => {
  const view = played(read("demo"));
  const lane = laneOf(view, "correctness");
  expect(lane.parts.map((part) => part.kind)).toEqual(["message", "thinking", "call", "text", "call", "text", "end"]);
  const call = lane.parts[2] as CallPart;
  expect(call).toMatchObject({ name: "read_diff", state: "success", durationMs: 701 });
  expect(JSON.parse(call.arguments)).toEqual({ file: "src/cart.rs" });
  expect(call.result).toContain("+++ b/src/cart.rs");
  const spawning = view.lanes[0]!.parts.filter((part) => part.kind === "call").map((part) => part.id);
  const place = view.fleet.agents.findIndex((agent) => agent.source?.label === "correctness");
  expect(spawning).toContain(callOf(view, place));
  expect(lane.spans.every((span) => span.to !== undefined && span.to >= span.from)).toBe(true);
  expect(isRunning(view)).toBe(false);
});

test("what a person did is in the lanes", () => {
  const events = read("steered");
  const view = played(events);
  expect(laneOf(view, "security").parts).toContainEqual(expect.objectContaining({ kind: "message", mode: "steer" }));
  const calls = view.lanes.flatMap((lane) => lane.parts).filter((part) => part.kind === "call");
  expect(calls.some((call) => call.state === "denied")).toBe(true);
  expect(view.run?.outcome).toBe("cancelled");
  expect(view.asking).toEqual({});
  const asked = events.findIndex((event) => event.type === "REQUIRE_USER_CONFIRM");
  expect(Object.keys(played(events.slice(0, asked + 1)).asking)).toHaveLength(1);
});

test("a call whose request was withdrawn is told from one that was denied", () => {
  const at = { sessionId: "s", createdAt: "2026-11-26T10:00:00.000000Z", replyId: "r" };
  const call = (id: string) => ({ id, name: "write", arguments: "{}" });
  const events = [
    { ...at, seq: 1, type: "AGENT_START", name: "main", role: "assistant", input: [] },
    ...["a", "b"].map((id, n) => ({ ...at, seq: 2 + n, type: "TOOL_CALL_START", toolCallId: id, toolCallName: "write" })),
    { ...at, seq: 4, type: "USER_CONFIRM_RESULT", confirmId: "one", confirmResults: [{ confirmed: false, toolCall: call("a"), reason: "no" }] },
    { ...at, seq: 5, type: "USER_CONFIRM_RESULT", confirmId: "two", confirmResults: [{ confirmed: false, toolCall: call("b"), withdrawn: true }] },
  ] as unknown as AgentEvent[];
  const [denied, withdrawn] = played(events).lanes[0]!.parts;
  expect(denied).not.toHaveProperty("isWithdrawn");
  expect(withdrawn).toMatchObject({ kind: "call", id: "b", isWithdrawn: true });
});

test("a repeated model call takes back what it said", () => {
  const at = { sessionId: "s", createdAt: "2026-11-26T10:00:00.000000Z", replyId: "r" };
  const events = [
    { ...at, seq: 1, type: "AGENT_START", name: "main", role: "assistant", input: [] },
    { ...at, seq: 2, type: "TEXT_BLOCK_START", blockId: "b" },
    { ...at, seq: 3, type: "TEXT_BLOCK_DELTA", blockId: "b", delta: "half" },
    { ...at, seq: 4, type: "MODEL_RETRY", attempt: 1, waitMs: 0, error: { code: "cut", message: "the connection was cut" }, discarded: { blocks: ["b"] } },
  ] as AgentEvent[];
  expect(played(events).lanes[0]!.parts).toMatchObject([{ kind: "note", text: "the connection was cut" }]);
});
