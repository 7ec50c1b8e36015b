// All active sessions, on one screen.
import assert from "node:assert/strict";
import { accessibleInBoth, api, between, card, open, patience, picture, tabTo, TOKEN_OF_ACME } from "./harness.mjs";

/** Followed from no session to two that have ended, also after the connection was lost. */
export async function liveSessionsAreOnOneScreen() {
  const page = await open("#?live");
  await page.getByText("No session is active.").waitFor(patience);
  await accessibleInBoth(page, "no live session");
  await api("sessions/live-one/runs", "POST", { input: "Review the discount change" });
  await api("sessions/live-two/runs", "POST", { input: "Review it", options: { permissions: [{ ask: ["read_diff"] }] } });
  const session = (id, within = page) => within.locator(`section.card[aria-label="session ${id}"]`);
  const group = (name) => page.getByRole("region", { name, exact: true });

  // What needs a person is first, and in the title.
  await session("live-two", group("Needs you")).waitFor(patience);
  await session("live-one", group("Active")).locator("li", { hasText: "reviewer · correctness" }).waitFor(patience);
  assert.match(await page.title(), /^\(1\) /);
  assert.deepEqual((await page.locator(".fleets h2").allTextContents()).map((text) => text.split(" (")[0]), ["Needs you", "Active"]);
  await page.getByLabel("limits of this server").getByText(/^2 of \d+ runs$/).waitFor();
  await accessibleInBoth(page, "live sessions");
  await picture(page, "live");

  // The filters, by keyboard.
  const search = page.getByLabel("find a live session");
  await tabTo(page, search);
  await page.keyboard.type("LIVE-ONE");
  await session("live-two").waitFor({ ...patience, state: "detached" });
  await search.fill("");
  await tabTo(page, page.getByRole("button", { name: "Only what needs you" }));
  await page.keyboard.press("Space");
  await session("live-one").waitFor({ ...patience, state: "detached" });
  await page.keyboard.press("Space");
  await session("live-one").waitFor(patience);

  // After a cut each session is there again, once.
  between.dropLive();
  await page.locator(".banner", { hasText: "The connection is lost" }).waitFor(patience);
  await page.locator(".banner").waitFor({ ...patience, state: "detached" });
  await session("live-two", group("Needs you")).waitFor(patience);
  assert.equal(await session("live-two").count(), 1);

  // A session is opened, and the way back leads here.
  const { active_run: run } = await api("sessions/live-two");
  await session("live-two").getByRole("link", { name: "live-two" }).press("Enter");
  await page.locator("article.ask").first().waitFor(patience);
  await page.getByRole("link", { name: "Live", exact: true }).click();
  await session("live-two", group("Needs you")).waitFor(patience);
  await api("sessions/live-three/runs", "POST", { input: "Review the discount change" });
  await session("live-three", group("Active")).waitFor(patience);
  await session("live-three", group("Ended")).getByText("done").waitFor(patience);
  await api(`runs/${run}/cancel`, "POST");
  await page.context().close();
}

/** The operator opens a tenant's session from the live screen, answers what it asks, and stays with the tenant. */
export async function theOperatorOpensSessionsOfTenants() {
  const page = await open("#?live");
  const begun = { input: "Review it", options: { permissions: [{ ask: ["read_diff"] }] } };
  await api("sessions/of-acme/runs", "POST", begun, TOKEN_OF_ACME);
  const session = page.locator('section.card[aria-label="session of-acme of acme"]');
  await session.getByRole("link", { name: "of-acme" }).press("Enter");
  await page.waitForURL(/#of-acme\?tenant=acme$/);
  await card(page, "reviewer · correctness").waitFor(patience);
  await page.locator(".head .chip", { hasText: /^acme$/ }).waitFor(patience);
  await page.locator("article.ask").first().getByRole("button", { name: "Deny" }).first().press("Enter");
  await picture(page, "of-a-tenant");
  // The list has the tenant's sessions, and each address names the tenant.
  const listed = page.getByRole("list", { name: "sessions" }).getByRole("link");
  await listed.first().waitFor(patience);
  assert.deepEqual(await listed.evaluateAll((links) => links.map((link) => link.getAttribute("href"))), ["/#of-acme?tenant=acme"]);
  await page.getByRole("button", { name: "New", exact: true }).press("Enter");
  await page.waitForURL(/#page-[^?]+\?tenant=acme$/);
  const { items } = await api("sessions");
  assert.ok(items.every(({ id }) => id !== "of-acme"), "the operator's own sessions are others");
  await page.context().close();
}
