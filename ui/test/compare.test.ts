// What differs between two runs.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { compareAgents, compareParts, defaultPair, runsOf, viewOf } from "../src/fleet/compare";
import { recordOf } from "../src/fleet/excerpt";
import type { Part } from "../src/fleet/lane";
import { withRetry } from "./retry.mjs";

const TIMELINES = new URL("../../crates/mainstem-event/tests/timelines/", import.meta.url);
const demo = recordOf(readFileSync(new URL("demo.ndjson", TIMELINES), "utf8"));
const events = withRetry(demo);
const [first, second] = runsOf(events);
const differing = (a: string, b: string) =>
  Object.fromEntries(compareAgents(viewOf(events, a), viewOf(events, b)).map(({ name, differs }) => [name, differs.join(" ")]));

test("a run does not differ from itself", () => {
  expect(Object.values(differing(first!.id, first!.id))).toEqual(["", "", "", "", "", ""]);
});

test("a retry differs in what is other in it, whatever its ids are", () => {
  const expected = {
    "main": "tokens",
    "reviewer · correctness": "calls",
    "reviewer · security": "time",
    "tester · tests": "texts",
    "runner": "results",
    "reviewer · promises": "only",
  };
  expect(differing(first!.id, second!.id)).toEqual(expected);
  expect(differing(second!.id, first!.id)).toEqual(expected);
});

test("the runs of a session are its root's; a run is compared with the one that it repeats", () => {
  const runs = runsOf(recordOf(readFileSync(new URL("steered.ndjson", TIMELINES), "utf8")));
  expect(runs.map(({ input, outcome }) => [input, outcome])).toEqual([
    ["Review the discount change", "success"],
    ["Once more", "success"],
    ["", "success"],
    ["A last time", "cancelled"],
  ]);
  const [a, b, c] = runs.map((run, n) => ({ ...run, id: String(n) }));
  expect(defaultPair([a!, b!, { ...a!, id: "again" }])).toEqual({ a: "0", b: "again" });
  expect(defaultPair([a!, b!, c!])).toEqual({ a: "1", b: "2" });
  expect(defaultPair([a!])).toEqual({ a: "0", b: "0" });
  expect(defaultPair([])).toEqual({ a: undefined, b: undefined });
});

test("agents with other labels are compared by their id", () => {
  const relabelled = JSON.parse(JSON.stringify(demo).replaceAll('"label":"security"', '"label":"safety"')) as typeof demo;
  const rows = compareAgents(viewOf(demo, first!.id), viewOf(relabelled, first!.id));
  expect(rows.map(({ a, b }) => [a?.agent.source?.label, b?.agent.source?.label])).toContainEqual(["security", "safety"]);
  expect(rows.every(({ differs }) => !differs.includes("only"))).toBe(true);
});

test("parts stand beside equal ones", () => {
  const text = (id: string): Part => ({ kind: "text", id, seq: 1, text: id, isOpen: false });
  const rows = (a: string, b: string) => compareParts([...a].map(text), [...b].map(text))
    .map((row) => `${row.a?.id ?? "-"}${row.b?.id ?? "-"}${row.differs === undefined ? "" : "!"}`).join(" ");
  expect(rows("abc", "abc")).toBe("aa bb cc");
  expect(rows("abc", "ac")).toBe("aa b-! cc");
  expect(rows("ac", "abc")).toBe("aa -b! cc");
  expect(rows("abc", "axc")).toBe("aa bx! cc");
  expect(rows("", "a")).toBe("-a!");
});

test("two lanes of the greatest length are aligned in less than 100 ms", () => {
  const parts = Array.from({ length: 400 }, (_, n): Part => ({ kind: "text", id: String(n), seq: n, text: `text ${n % 7}`, isOpen: false }));
  const begun = performance.now();
  expect(compareParts(parts, parts.slice(1)).length).toBeGreaterThanOrEqual(400);
  expect(performance.now() - begun).toBeLessThan(100);
});
