// Builds one of the packages, which the mode names, into its folder: a module and the licences of
// what it contains.
import { defineConfig } from "vite";

const ENTRIES: Record<string, string> = { reducer: "src/reducer.ts", fleet: "src/element.tsx" };

export default defineConfig(({ mode }) => ({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  publicDir: false,
  build: {
    outDir: `packages/${mode}/dist`,
    emptyOutDir: true,
    target: "es2022",
    license: { fileName: "licences.md" },
    lib: { entry: ENTRIES[mode]!, formats: ["es"], fileName: () => "index.js" },
  },
} as never));
