// Builds what the program embeds into dist: each script whole, in one file with a
// name that stays, so that a build of the same sources gives the same bytes.
import { copyFile, mkdir, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = fileURLToPath(new URL(".", import.meta.url));
const outDir = process.argv[2] ?? root + "dist";

await rm(outDir, { recursive: true, force: true });
await mkdir(outDir, { recursive: true });
for (const [name, entry, format] of [
  ["page", "page/main.ts", "es"],
  ["widget", "widget/index.ts", "es"],
  ["client", "client/index.ts", "es"],
  ["count", "count/count.ts", "iife"],
]) {
  await build({
    root,
    configFile: false,
    logLevel: "warn",
    build: {
      outDir,
      emptyOutDir: false,
      target: "es2022",
      reportCompressedSize: false,
      modulePreload: false,
      rollupOptions: {
        input: root + entry,
        preserveEntrySignatures: "strict",
        output: { format, entryFileNames: name + ".js", assetFileNames: name + "[extname]" },
      },
    },
  });
}
for (const file of ["index.html", "icon.svg"]) await copyFile(root + "page/" + file, outDir + "/" + file);
