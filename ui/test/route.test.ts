// The address of a moment.
import { expect, test } from "vitest";
import { readRoute, writeRoute, type Route } from "../src/route";

test.each<[string, Route]>([
  ["", {}],
  ["#one", { session: "one" }],
  ["#?live", { isLive: true }],
  ["#one@17", { session: "one", seq: 17 }],
  ["#one/agent%3Aworker%3A1@17", { session: "one", agent: "agent:worker:1", seq: 17 }],
  ["#one?link=msl0a", { session: "one", link: "msl0a" }],
  ["#one/agent%3Aworker%3A1@17?link=msl0a&depth=1&compare=", { session: "one", link: "msl0a", agent: "agent:worker:1", seq: 17, filter: { depth: 1 }, compare: {} }],
  ["#one/root?tenant=acme&kind=text", { session: "one", tenant: "acme", agent: "root", filter: { kinds: ["text"] } }],
  ["#acme%2Fone/root", { session: "acme/one", agent: "root" }],
  ["#one/root@17?id=reviewer&depth=1", { session: "one", agent: "root", seq: 17, filter: { id: "reviewer", depth: 1 } }],
  ["#one?in=agent%3Aworker%3A1&kind=text%2Ctools", { session: "one", filter: { within: "agent:worker:1", kinds: ["text", "tools"] } }],
  ["#a%3Fb%40c?compare=", { session: "a?b@c", compare: {} }],
  ["#one?depth=0&compare=&a=run-1&b=run-2&of=acme%2Ftwo", { session: "one", filter: { depth: 0 }, compare: { a: "run-1", b: "run-2", session: "acme/two" } }],
])("%s", (hash, route) => {
  expect(readRoute(hash)).toEqual(route);
  expect(writeRoute(route)).toBe(hash || "#");
});

test("what an address can't mean is left out", () => {
  expect(readRoute("#one?depth=many&kind=colours&id=&link=")).toEqual({ session: "one" });
});
