// The address of a moment.
import { expect, test, vi } from "vitest";

vi.stubGlobal("location", { href: "http://localhost/", hash: "" });
const { readRoute, writeRoute } = await import("../src/route");

test.each([
  ["", {}],
  ["#one", { session: "one" }],
  ["#one@17", { session: "one", seq: 17 }],
  ["#one/agent%3Aworker%3A1@17", { session: "one", agent: "agent:worker:1", seq: 17 }],
  ["#acme%2Fone/root", { session: "acme/one", agent: "root" }],
])("%s", (hash, route) => {
  expect(readRoute(hash)).toEqual(route);
  expect(writeRoute(route)).toBe(hash || "#");
});
