// A picture that is larger than a message may be: sent on its own, shown live, by a later page, and
// by a document without a server.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { api, binary, browser, folder, open, patience, picture, saved, stage, TOKEN, watched } from "./harness.mjs";

const SIDE = 700;

/** A chunk of a PNG. */
function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  size.writeUInt32BE(data.length);
  sum.writeUInt32BE(zlib.crc32(body));
  return Buffer.concat([size, body, sum]);
}

/** A picture of noise, which does not compress: about 1.4 MiB. */
function noise() {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(SIDE, 0);
  head.writeUInt32BE(SIDE, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.concat(Array.from({ length: SIDE }, () => Buffer.concat([Buffer.alloc(1), crypto.randomBytes(3 * SIDE)])));
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", zlib.deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** Waits until a page shows the picture in its full size. */
const isShown = (page) =>
  page.waitForFunction((side) => document.querySelector(".sent img")?.naturalWidth === side, SIDE, patience);

export async function showsAttachedPictures() {
  const noisy = path.join(folder, "noise.png");
  fs.writeFileSync(noisy, noise());
  assert.ok(fs.statSync(noisy).size > 1 << 20);
  const page = await open("#attached");
  await page.getByLabel("Task", { exact: true }).fill("What is in this picture?");
  await page.locator("input[type=file]").setInputFiles(noisy);
  await page.getByRole("button", { name: "Start the run" }).press("Enter");
  await isShown(page);
  await picture(page, "attached");
  const [start] = (await api("sessions/attached/events/1")).input;
  assert.deepEqual(Object.keys(start.content[1].source), ["stored"]);

  const later = await open("#attached");
  await isShown(later);
  await later.close();

  const exported = path.join(folder, "attached.html");
  const html = execFileSync(binary, ["sessions", "export", "attached", "--html", "--server", stage.server.url], {
    env: { ...process.env, MAINSTEM_TOKEN: TOKEN }, maxBuffer: 64 << 20,
  });
  fs.writeFileSync(exported, html);
  const downloaded = path.join(folder, "attached-saved.html");
  const { path: file } = await saved(page, page.getByRole("button", { name: "HTML" }));
  fs.copyFileSync(file, downloaded);
  for (const document of [exported, downloaded]) {
    const alone = watched(await browser.newPage(), "file://");
    await alone.goto(`file://${document}`);
    await isShown(alone);
    await alone.close();
  }
  await page.close();
}
