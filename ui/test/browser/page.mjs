// The page in Chromium, against `mainstem serve -m demo`.
//
// `cargo xtask ui` runs it: node page.mjs <the binary `mainstem`> [<a folder for pictures>]
// `ONLY=savesExcerpts,…` runs some of the tests.
import assert from "node:assert/strict";
import { close, timed, trouble } from "./harness.mjs";
import { runsAreCompared, runsAreComparedOnSmallScreens, runsOfOtherSessionsAreCompared } from "./compare.mjs";
import { isFiltered } from "./filter.mjs";
import { keepsUpWithFiftyAgents, opensLargeSessions } from "./load.mjs";
import { beginsWhereTheRecordDoes, forgetsWhatTheServerHasForgotten, showsHostileText } from "./odd.mjs";
import { opensWithoutAServer, savesExcerpts } from "./saved.mjs";
import { asksForAToken, fitsEveryScreen, isWatchedAndSteered, survivesARestart, survivesCutsAndIsReplayed } from "./watch.mjs";

try {
  await Promise.all([
    timed(survivesCutsAndIsReplayed),
    timed(asksForAToken).then(() => timed(isWatchedAndSteered)),
  ]);
  for (const work of [
    fitsEveryScreen,
    survivesARestart,
    showsHostileText,
    beginsWhereTheRecordDoes,
    forgetsWhatTheServerHasForgotten,
    isFiltered,
    opensWithoutAServer,
    savesExcerpts,
    runsAreCompared,
    runsOfOtherSessionsAreCompared,
    runsAreComparedOnSmallScreens,
    keepsUpWithFiftyAgents,
    opensLargeSessions,
  ]) await timed(work);
  assert.deepEqual(trouble, []);
} finally {
  await close();
}
process.exit(0);
