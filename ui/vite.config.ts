// Builds the page into the crate that serves it: fixed names, no source maps, and at most 80 KB
// with gzip.
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const MOST = 80_000;

/** Fails the build if the page grows beyond its budget. */
const budget: Plugin = {
  name: "budget",
  generateBundle(_, bundle) {
    const sizes = Object.values(bundle).map((file) => gzipSync(file.type === "chunk" ? file.code : file.source).length);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    if (total > MOST) this.error(`the page has ${total} bytes with gzip; at most ${MOST} are allowed`);
    console.log(`${total} bytes with gzip, of at most ${MOST}`);
  },
};

export default defineConfig({
  // Relative, so that the page works below any path.
  base: "./",
  plugins: [budget],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../crates/mainstem-server/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    // What the page consists of asks to be named with it.
    license: { fileName: "page/licences.md" },
    // A data URL would need more than the policy allows.
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "page/page.js",
        chunkFileNames: "page/[name].js",
        assetFileNames: "page/page[extname]",
      },
    },
  },
  test: { include: ["test/*.test.ts"] },
} as never);
