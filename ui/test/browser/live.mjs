// All active sessions, on one screen.
import assert from "node:assert/strict";
import { accessibleInBoth, api, between, open, patience, picture, tabTo } from "./harness.mjs";

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
