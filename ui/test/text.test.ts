// What becomes of foreign text before it is shown.
import { expect, test } from "vitest";
import { escaped, firstLine, visible } from "../src/view/text";

test("characters that hide or reorder text are shown as escapes", () => {
  expect(visible("a\u001b[31mb\u202egnp.exe\u2066\u0000")).toBe("a\\u{1b}[31mb\\u{202e}gnp.exe\\u{2066}\\u{0}");
  expect(visible("größer\t長い\n🦀")).toBe("größer\t長い\n🦀");
});

test("escapes in JSON are the same value", () => {
  const value = { path: "a\u202egnp.exe\u001b" };
  const text = escaped(JSON.stringify(value));
  expect(text).toBe('{"path":"a\\u202egnp.exe\\u001b"}');
  expect(JSON.parse(text)).toEqual(value);
});

test("a first line is short", () => {
  expect(firstLine("\n one\ntwo")).toBe("one");
  expect(firstLine("x".repeat(1_000_000), 5)).toBe("xxxxx…");
});
