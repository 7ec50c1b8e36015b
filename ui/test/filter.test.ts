// Which agents and parts a filter shows, and what of a record an excerpt retains.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { excerptOf, lacks, linesOf, recordOf } from "../src/fleet/excerpt";
import { isShown, isSpanShown, keysBelow, matchesOf, type Filter } from "../src/fleet/filter";
import { agentKey, indexed } from "../src/fleet/fleet";
import { apply, nameOf, NO_VIEW } from "../src/fleet/view";

const text = readFileSync(new URL("../../crates/mainstem-event/tests/timelines/demo.ndjson", import.meta.url), "utf8");
const events = recordOf(text);
const places = indexed([]);
const view = events.reduce((before, event) => apply(before, event, places), NO_VIEW);
const { fleet } = view;
const keyOf = (name: string) => agentKey(fleet.agents.find((agent) => nameOf(agent) === name)!);
const names = (set: ReadonlySet<number>) => [...set].sort((a, b) => a - b).map((place) => nameOf(fleet.agents[place]!));

test.each<[Filter, string[], string[]]>([
  [{ id: "runner" }, ["runner"], ["main", "tester · tests", "runner"]],
  [{ depth: 0 }, ["main"], ["main"]],
  [{ within: keyOf("tester · tests") }, ["tester · tests", "runner"], ["main", "tester · tests", "runner"]],
  [{ within: keyOf("tester · tests"), depth: 1 }, ["tester · tests"], ["main", "tester · tests"]],
  [{ id: "nobody" }, [], []],
])("%o shows", (filter, shown, onPath) => {
  const matches = matchesOf(fleet, filter)!;
  expect(names(matches.shown)).toEqual(shown);
  expect(names(matches.onPath)).toEqual(onPath);
});

test("a filter of kinds restricts no agents", () => {
  expect(matchesOf(fleet, { kinds: ["tools"] })).toBeUndefined();
  const kinds = (filter: Filter) => new Set(view.lanes.flatMap((lane) => lane.parts.filter((part) => isShown(filter, part)).map((part) => part.kind)));
  expect([...kinds({ kinds: ["tools"] })]).toEqual(["call"]);
  expect([...kinds({ kinds: ["text", "thinking"] })].sort()).toEqual(["text", "thinking"]);
  expect(kinds({}).size).toBeGreaterThan(4);
  const spans = view.lanes.flatMap((lane) => lane.spans);
  expect(new Set(spans.filter((span) => isSpanShown({ kinds: ["tools"] }, span)).map((span) => span.kind))).toEqual(new Set(["tool"]));
});

test("a record is read as it was written", () => {
  expect(linesOf(events).join("")).toBe(text);
  expect(recordOf(`${text}{"type":"TEXT_BL`)).toEqual(events);
  expect(() => recordOf(`no JSON\n${text}`)).toThrow("line 1 of the record is not JSON");
});

test("an excerpt says what it lacks", () => {
  expect(lacks(events)).toBeUndefined();
  expect(lacks(excerptOf(events, { to: 100 }))).toBeUndefined();
  expect(lacks(excerptOf(events, { from: 100, to: 120 }))).toBe("This is an excerpt: it begins at event 100.");
  const subtree = excerptOf(events, { agents: keysBelow(fleet, keyOf("tester · tests")) });
  expect(new Set(subtree.map((event) => event.source?.agentId))).toEqual(new Set(["tester", "runner"]));
  expect(lacks(subtree)).toMatch(/^This is an excerpt: it begins at event \d+, and \d+ events between are left out\.$/);
});
