// A session saved as a test: the same file as the binary writes, which is compiled and run.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { AgentEvent } from "../src/fleet/event";
import { recordOf } from "../src/fleet/excerpt";
import { notATest, testOf } from "../src/test";

const file = readFileSync(new URL("../../tests/it/exported.rs", import.meta.url), "utf8");
const events = recordOf(file.slice(file.indexOf('r#"') + 3, file.lastIndexOf('"#;')));

test("a session is saved as the test that the binary writes", () => {
  expect(events.length).toBeGreaterThan(300);
  expect(notATest(events)).toBeUndefined();
  expect(testOf("walk", events).join("")).toBe(file);
});

test("no text ends the literal or is refused by the compiler", () => {
  const name = '#step "#\u202e\u2066 ##';
  const custom = { ...events[0], type: "CUSTOM", name, value: "#" } as unknown as AgentEvent;
  const text = testOf("A-s.1", [custom]).join("");
  expect(text).toContain("async fn session_a_s_1() {");
  const literal = text.slice(text.indexOf('r#"') + 3);
  const end = literal.indexOf('"#');
  expect(literal.slice(end)).toBe('"#;\n');
  expect(literal).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
  expect(recordOf(literal.slice(0, end))).toEqual([custom]);
});

test("a part of a session, and one that goes on, are not tests", () => {
  expect(notATest(events.slice(0, 50))).toBe("an agent is still running; a test is of runs that have ended");
  expect(notATest(events.slice(1))).toBe("a test needs the whole record");
});
