// Builds the page into the crate that serves it: fixed names, no source maps, and at most 80 KB
// with gzip.
import { createHash } from "node:crypto";
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

/**
 * Names the hash of each file where `index.html` links to it, and fails if a file can't stand inside
 * of a document as `src/document.ts` writes it.
 */
const hashes: Plugin = {
  name: "hashes",
  enforce: "post",
  generateBundle(_, bundle) {
    const index = bundle["index.html"];
    if (index?.type !== "asset") return;
    const inline = (path: string, end: RegExp, link: RegExp, id: string) => {
      const file = bundle[path]!;
      const text = file.type === "chunk" ? file.code : String(file.source);
      if (end.test(text)) this.error(`${path} contains what would end its element: ${end.exec(text)![0]}`);
      const hash = createHash("sha256").update(text).digest("base64");
      index.source = String(index.source).replace(link, (found) => `${found} id="${id}" integrity="sha256-${hash}"`);
    };
    inline("page/page.js", /<\/?script|\r/i, /<script type="module"/, "page-script");
    inline("page/page.css", /<\/style|\r/i, /<link rel="stylesheet"/, "page-style");
  },
};

export default defineConfig({
  // Relative, so that the page works below any path.
  base: "./",
  plugins: [hashes, budget],
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
