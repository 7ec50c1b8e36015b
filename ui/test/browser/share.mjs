// A session that is read with a link: live until the link is revoked, or up to an event.
import assert from "node:assert/strict";
import fs from "node:fs";
import { accessible, accessibleInBoth, api, between, browser, card, isSlow, open, patience, picture, saved, tabTo, TOKEN_OF_ACME, watched } from "./harness.mjs";

const OVER = "This link has ended or was revoked.";

/** Opens an address without a token of the server; `refused` are the requests that failed. */
async function openShared(address, look = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...look });
  const page = watched(await context.newPage(), between.url);
  const refused = [];
  page.on("response", (response) => response.status() >= 400 && refused.push(`${response.status()} ${response.url()}`));
  await page.goto(address);
  return { page, refused };
}

/** Opens the panel by keyboard. */
async function openPanel(page) {
  await tabTo(page, page.getByRole("button", { name: "Share", exact: true }));
  await page.keyboard.press("Enter");
  const panel = page.getByRole("region", { name: "share this session" });
  await panel.waitFor(patience);
  return panel;
}

/** Creates a link by keyboard, and returns its address. */
async function create(page, panel) {
  const links = panel.getByRole("listitem");
  const before = await links.count();
  await tabTo(page, panel.getByRole("button", { name: "Create link" }));
  await page.keyboard.press("Enter");
  await links.nth(before).waitFor(patience);
  const field = panel.getByLabel("address of the link");
  await tabTo(page, field);
  return field.inputValue();
}

/** The last event that a page shows. */
const lastOf = async (page) => Number(/of (\d+)/.exec(await page.locator(".replay output").textContent())[1]);

const ended = (page) => page.waitForFunction(() => /idle|over/.test(document.querySelector(".head .chip")?.textContent ?? ""), undefined, patience);

/** Two runs are read with a live link, the second one while it runs; then the link is revoked. */
export async function isSharedUntilTheLinkIsRevoked() {
  await api("sessions/shared-live/runs", "POST", { input: "Review the discount change" });
  const owner = await open("#shared-live", { permissions: ["clipboard-read", "clipboard-write"] });
  await card(owner, "reviewer · correctness").waitFor(patience);
  const panel = await openPanel(owner);
  const address = await create(owner, panel);
  assert.match(address, new RegExp(`^${between.url}#shared-live\\?link=msl[0-9a-f]{64}$`));
  await accessibleInBoth(owner, "share");
  await picture(owner, "share");
  await tabTo(owner, panel.getByRole("button", { name: "Copy" }));
  await owner.keyboard.press("Enter");
  await owner.getByText("The address is copied.").waitFor(patience);
  assert.equal(await owner.evaluate(() => navigator.clipboard.readText()), address);

  // The reader has the link and nothing else.
  const { page, refused } = await openShared(address);
  await card(page, "reviewer · correctness").locator(".said").first().waitFor(patience);
  await page.locator(".banner", { hasText: /^Shared session, read only · until [^·]+$/ }).waitFor(patience);
  for (const part of ["form.composer", ".sessions", "article.ask", "[aria-label='needs you']"]) assert.equal(await page.locator(part).count(), 0, part);
  for (const name of ["New", "Share", /^Cancel/, "Start the run"]) assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, String(name));
  assert.equal(await page.evaluate(() => sessionStorage.length + localStorage.length), 0, "the token is not stored");
  await accessibleInBoth(page, "a shared session");
  await picture(page, "shared");

  // What runs later is there, too.
  await ended(page);
  await api("sessions/shared-live/runs", "POST", { input: "Review it once more" });
  await page.locator(".sent", { hasText: "Review it once more" }).waitFor(patience);
  await page.locator(".chip", { hasText: "LIVE" }).waitFor(patience);

  // Each step stays within the link, and names its moment.
  await card(page, "reviewer · correctness").first().locator(".name").first().press("Enter");
  await page.waitForFunction(() => /^#shared-live\/[^?]+\?link=msl/.test(location.hash), undefined, patience);
  await page.getByRole("button", { name: "texts", exact: true }).press("Enter");
  await page.getByRole("slider", { name: "event" }).fill("20");
  await page.getByRole("button", { name: "Link", exact: true }).press("Enter");
  await page.waitForFunction(() => /@20\?link=msl[0-9a-f]{64}&kind=text$/.test(location.hash), undefined, patience);
  const { page: moment, refused: refusedThere } = await openShared(page.url());
  await moment.locator(".banner", { hasText: "REPLAY at event 20." }).waitFor(patience);
  await moment.getByRole("button", { name: "Compare runs" }).press("Enter");
  await moment.getByRole("main", { name: "two runs" }).waitFor(patience);
  assert.equal(await moment.getByLabel("Session of run B").count(), 0);
  await moment.getByRole("button", { name: "Close the comparison" }).press("Enter");
  await page.getByRole("button", { name: "Back to live" }).press("Enter");
  for (const name of ["NDJSON", "HTML"]) {
    const { path } = await saved(moment, moment.getByRole("button", { name, exact: true }));
    assert.match(fs.readFileSync(path, "utf8"), /"seq":20,/, name);
    assert.doesNotMatch(fs.readFileSync(path, "utf8"), /msl[0-9a-f]{64}/, `${name} has no token`);
  }
  assert.deepEqual([...refused, ...refusedThere], [], "no request is refused");
  await moment.context().close();

  // Once it is revoked, the page shows so, and sends nothing any more.
  await owner.getByRole("button", { name: /^Revoke the link created .* · live$/ }).focus();
  await owner.keyboard.press("Enter");
  await owner.getByText("The link is revoked.").waitFor(patience);
  assert.equal(await panel.evaluate((element) => element === document.activeElement), true, "the focus stays in the panel");
  assert.equal(await panel.getByLabel("address of the link").count(), 0);
  await page.getByText(OVER).waitFor(patience);
  assert.equal(await page.locator("#token").count(), 0, "no token is asked for");
  await accessible(page, "a link that was revoked");
  const count = refused.length;
  await page.waitForTimeout(6000);
  assert.equal(refused.length, count, `requests go on: ${refused}`);

  // Without the link, the address is that of the server's own page.
  await page.evaluate(() => (location.hash = "#"));
  await page.locator("#token").waitFor(patience);
  await page.context().close();

  await owner.keyboard.press("Escape");
  await panel.waitFor({ ...patience, state: "detached" });
  assert.equal(await owner.getByRole("button", { name: "Share", exact: true }).evaluate((element) => element === document.activeElement), true, "the focus is where it was");
  await owner.context().close();
}

/** A later run is not shown with a link that ends at an event; on a small screen. */
export async function isSharedUpToAnEvent() {
  await api("sessions/shared-frozen/runs", "POST", { input: "Review the discount change" });
  const owner = await open("#shared-frozen");
  await card(owner, "reviewer · correctness").waitFor(patience);
  await ended(owner);
  const panel = await openPanel(owner);
  await tabTo(owner, panel.getByRole("radio", { name: "Live: shows what happens later, too" }));
  await owner.keyboard.press("ArrowDown");
  const address = await create(owner, panel);
  const last = Number(/^created .* · up to event (\d+)/.exec(await panel.getByRole("listitem").innerText())[1]);
  assert.ok(await panel.getByText(`As it is now: up to event ${last}`).isVisible(), "all that is there is shown");
  await api("sessions/shared-frozen/runs", "POST", { input: "Review it once more" });
  await owner.locator(".sent", { hasText: "Review it once more" }).waitFor(patience);

  const { page, refused } = await openShared(address, { viewport: { width: 390, height: 844 } });
  await page.locator(".banner", { hasText: `up to event ${last}` }).waitFor(patience);
  await page.locator(".head .chip", { hasText: "over" }).waitFor(patience);
  assert.equal(await lastOf(page), last);
  assert.equal(await page.locator(".sent").count(), 1);
  await page.getByRole("button", { name: "Figures" }).click();
  await page.getByLabel("background").waitFor(patience);
  await accessible(page, "a shared session on a small screen");
  assert.deepEqual(refused, [], "no request is refused");
  await page.context().close();
  await owner.context().close();
}

/** The operator shares a tenant's session; no more links than a session may have; without the clipboard. */
export async function sharesWithinLimits() {
  const links = "sessions/shared-of-acme/links";
  await api("sessions/shared-of-acme/runs", "POST", { input: "Review the discount change" }, TOKEN_OF_ACME);
  const owner = await open("#shared-of-acme?tenant=acme");
  // Without a certificate, a page has no clipboard.
  await owner.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await ended(owner);
  const panel = await openPanel(owner);
  const address = await create(owner, panel);
  assert.match(address, new RegExp(`^${between.url}#shared-of-acme\\?link=msl[0-9a-f]{64}$`));
  await panel.getByRole("button", { name: "Copy" }).press("Enter");
  await owner.getByText("The address is selected; copy it by keyboard.").waitFor(patience);
  assert.equal(await owner.evaluate(() => getSelection().toString() || document.activeElement.value), address);

  const { page, refused } = await openShared(address);
  await card(page, "reviewer · correctness").waitFor(patience);
  await page.locator(".banner", { hasText: "Shared session, read only" }).waitFor(patience);
  assert.deepEqual(refused, [], "no request is refused");
  await page.context().close();

  for (let count = 1; count < 100; count += 1) await api(links, "POST", {}, TOKEN_OF_ACME);
  await panel.getByRole("button", { name: "Create link" }).press("Enter");
  await owner.getByText("this session has 100 links; revoke some (too_many_links)").waitFor(patience);
  await owner.getByRole("button", { name: "close the panel" }).press("Enter");
  await openPanel(owner);
  await panel.getByRole("listitem").nth(99).waitFor(patience);
  await picture(owner, "share-many");
  await accessible(owner, "a hundred links");
  await owner.context().close();
}

/** A page that is open when its link ends says so. The shortest link lasts a minute. */
export async function linksEndByTime() {
  if (!isSlow) return;
  await api("sessions/shared-shortly/runs", "POST", { input: "Review the discount change" });
  const { token } = await api("sessions/shared-shortly/links", "POST", { expires_in: 60 });
  const { page } = await openShared(`${between.url}#shared-shortly?link=${token}`);
  await card(page, "reviewer · correctness").waitFor(patience);
  await page.getByText(OVER).waitFor({ timeout: 75_000 });
  await accessible(page, "a link that has ended");
  await page.context().close();
}
