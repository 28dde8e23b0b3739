import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium, type Browser } from "playwright-core";

/** The installed Chromium: none is downloaded. */
function installed(): string {
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const places = [process.env["TIDEMARK_CHROMIUM"] ?? "", ...(process.env["PATH"] ?? "").split(delimiter).flatMap((dir) => names.map((n) => join(dir, n)))];
  for (const place of places) {
    try {
      accessSync(place, constants.X_OK);
      return place;
    } catch {
      // the next
    }
  }
  throw new Error("Chromium is missing: install the package chromium (apt-get install chromium), or name its program in TIDEMARK_CHROMIUM");
}

export function launch(): Promise<Browser> {
  const still = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: installed(), args: still });
}
