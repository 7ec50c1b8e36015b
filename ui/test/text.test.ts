// What becomes of foreign text before it is shown.
import { expect, test } from "vitest";
import { firstLine, visible } from "../src/view/text";

test("characters that hide or reorder text are shown as escapes", () => {
  expect(visible("a\u001b[31mb\u202egnp.exe\u2066\u0000")).toBe("a\\u{1b}[31mb\\u{202e}gnp.exe\\u{2066}\\u{0}");
  expect(visible("größer\t長い\n🦀")).toBe("größer\t長い\n🦀");
});

test("a first line is short", () => {
  expect(firstLine("\n one\ntwo")).toBe("one");
  expect(firstLine("x".repeat(1_000_000), 5)).toBe("xxxxx…");
});
