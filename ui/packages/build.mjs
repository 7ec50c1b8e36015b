// Builds the packages: modules by Vite, and their types by the compiler. Node resolves no path
// without an ending, so that the types' imports get one.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const ENTRIES = { reducer: "reducer.ts", fleet: "element.tsx" };
const ui = path.resolve(import.meta.dirname, "..");
const run = (program, ...args) => execFileSync(path.join(ui, "node_modules/.bin", program), args, { cwd: ui, stdio: "inherit" });

for (const [name, entry] of Object.entries(ENTRIES)) {
  const dist = path.join(ui, "packages", name, "dist");
  run("vite", "build", "--config", "vite.packages.ts", "--mode", name, "--logLevel", "warn");
  const config = path.join(ui, "packages", name, "tsconfig.json");
  run("tsc", "--project", config);
  fs.renameSync(path.join(dist, entry.replace(/\.tsx?$/, ".d.ts")), path.join(dist, "index.d.ts"));
  const needed = follow(path.join(dist, "index.d.ts"));
  for (const file of typesIn(dist)) if (!needed.has(file)) fs.rmSync(file);
}

function typesIn(dist) {
  return fs.readdirSync(dist, { recursive: true }).filter((file) => file.endsWith(".d.ts")).map((file) => path.join(dist, file));
}

/** Gives the imports of a file their endings, and returns the file with all that it needs. */
function follow(file, needed = new Set()) {
  if (needed.has(file)) return needed;
  needed.add(file);
  const text = fs.readFileSync(file, "utf8").replace(/from "(\.{1,2}\/[^"]+)"/g, (_, to) => {
    follow(path.resolve(path.dirname(file), `${to}.d.ts`), needed);
    return `from "${to}.js"`;
  });
  fs.writeFileSync(file, text);
  return needed;
}
