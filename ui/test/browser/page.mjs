// The page in Chromium, against `mainstem serve -m demo`.
//
// `cargo xtask ui` runs it: node page.mjs <the binary `mainstem`> [<a folder for pictures>]
// `ONLY=savesExcerpts,…` runs some of the tests.
import assert from "node:assert/strict";
import { close, timed, trouble } from "./harness.mjs";
import { showsAttachedPictures } from "./attach.mjs";
import { runsAreCompared, runsAreTabsOnSmallScreens, runsOfOtherSessionsAreCompared } from "./compare.mjs";
import { isFiltered } from "./filter.mjs";
import { liveSessionsAreOnOneScreen, theOperatorOpensSessionsOfTenants } from "./live.mjs";
import { keepsUpWithFiftyAgents, needsNoMoreMemoryWithTime, opensLargeSessions } from "./load.mjs";
import { isReplayedFromTheServer } from "./long.mjs";
import { beginsWhereTheRecordDoes, findsSessionsOfLaterPages, forgetsWhatTheServerHasForgotten, showsHostileText } from "./odd.mjs";
import { isInstalledAndUsed } from "./packages.mjs";
import { isSharedUntilTheLinkIsRevoked, isSharedUpToAnEvent, linksEndByTime, sharesWithinLimits } from "./share.mjs";
import { opensWithoutAServer, savesExcerpts } from "./saved.mjs";
import { movesOnlyWhereItMay, screensAreAsAccepted } from "./screens.mjs";
import { figuresOfEachAgentAreShown, outputsAreShownAsWhatTheyAre, theTimelineHasATwin, whatWaitsIsShown } from "./shows.mjs";
import { actionsSayWhyTheyAreDisabled, isSteeredByKeyboard, isSteeredByMouse, nothingIsSentWhereItMayNot, refusalsAreTold } from "./steer.mjs";
import { isWalkedThrough } from "./walk.mjs";
import { asksForAToken, isWatchedAndSteered, survivesARestart, survivesCutsAndIsReplayed, survivesRandomCuts } from "./watch.mjs";

/** Runs tests one after another. */
async function inOrder(...tests) {
  for (const test of tests) await timed(test);
}

try {
  await Promise.all([
    inOrder(survivesCutsAndIsReplayed, survivesRandomCuts, isFiltered, runsAreCompared, runsOfOtherSessionsAreCompared, runsAreTabsOnSmallScreens),
    inOrder(asksForAToken, isWatchedAndSteered, isWalkedThrough, isInstalledAndUsed),
  ]);
  await Promise.all([
    inOrder(screensAreAsAccepted),
    inOrder(movesOnlyWhereItMay, opensWithoutAServer, savesExcerpts, beginsWhereTheRecordDoes, forgetsWhatTheServerHasForgotten),
  ]);
  await Promise.all([
    inOrder(liveSessionsAreOnOneScreen, theOperatorOpensSessionsOfTenants, isSharedUntilTheLinkIsRevoked, isSharedUpToAnEvent, sharesWithinLimits, linksEndByTime),
    inOrder(isSteeredByMouse, isSteeredByKeyboard, nothingIsSentWhereItMayNot, actionsSayWhyTheyAreDisabled, refusalsAreTold, outputsAreShownAsWhatTheyAre, figuresOfEachAgentAreShown, whatWaitsIsShown, theTimelineHasATwin),
  ]);
  await inOrder(survivesARestart, showsHostileText, showsAttachedPictures, findsSessionsOfLaterPages, keepsUpWithFiftyAgents, needsNoMoreMemoryWithTime, opensLargeSessions, isReplayedFromTheServer);
  assert.deepEqual(trouble, []);
} finally {
  await close();
}
process.exit(0);
