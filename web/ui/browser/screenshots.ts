import { mkdir } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, it } from "vitest";
import { launch } from "./chromium";
import { Server } from "./server";
import { Site } from "./site";

// Pictures of every page in every state, to be looked at: make screenshots.

const out = new URL("../screenshots/", import.meta.url).pathname;
const looks = (["light", "dark"] as const).flatMap((scheme) => [360, 768, 1280].map((width) => ({ scheme, width })));

let browser: Browser;
let server: Server;
let nothing: Server;
let site: Site;
let stop: () => Promise<void>;

beforeAll(async () => {
  await mkdir(out, { recursive: true });
  [browser, server, nothing] = await Promise.all([launch(), Server.start("--dimensions", "country,device,source,channel", "--allow-origins", "*"), Server.start()]);
  stop = await server.feed();
  site = await Site.start(
    () => `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark"><title>A site</title>
      <script type="module" src="${server.url}/widget.js"></script>
      <body style="font: 17px/1.5 Georgia, serif; max-width: 460px; margin: 24px auto; padding: 0 16px"><h2>The morning paper</h2>
      <p>A page of somebody else, in its own type. <tidemark-viewers item="video-0"></tidemark-viewers></p>
      <tidemark-trending by="views" last="1h" limit="6"></tidemark-trending>`,
  );
});
afterAll(async () => {
  await stop?.();
  await browser?.close();
  await site?.end();
  await Promise.all([server?.remove(), nothing?.remove()]);
});

async function shoot(name: string, url: () => string, ready: (page: Page) => Promise<unknown>, then = async (_: Page) => {}): Promise<void> {
  for (const { scheme, width } of looks) {
    const page = await browser.newPage({ viewport: { width, height: width < 500 ? 740 : 860 }, colorScheme: scheme, timezoneId: "Europe/Berlin" });
    await page.goto(url());
    await ready(page);
    await then(page);
    await page.screenshot({ path: `${out}${name}-${width}-${scheme}.png` });
    await page.close();
  }
}

const drawn = (page: Page) => page.locator(".list .spark polyline, .list .bar").nth(5).waitFor({ state: "attached" });

it("home", () => shoot("home", () => server.url + "/", drawn));
it("rising", () => shoot("rising", () => server.url + "/?by=rising&last=5m", (p) => p.locator(".row[data-key], .empty, .trouble").first().waitFor()));
it("values", () => shoot("values", () => server.url + "/?dimension=country", drawn));
it("item", () =>
  shoot(
    "item",
    () => server.url + "/item?item=video-0&last=1h",
    (p) => p.locator("tm-chart canvas").nth(1).waitFor(),
    async (p) => {
      await p.getByRole("group", { name: "Viewers, a curve" }).press("End");
      await p.waitForTimeout(300);
    },
  ));
it("status", () => shoot("status", () => server.url + "/status", (p) => p.locator(".fact").first().waitFor()));
it("widget", () => shoot("widget", () => site.url, (p) => p.locator("tidemark-trending [data-key]").nth(5).waitFor()));
it("empty", () => shoot("empty", () => nothing.url + "/", (p) => p.locator(".empty").waitFor()));
it("loading", () =>
  shoot(
    "loading",
    () => "about:blank",
    async (p) => {
      await p.routeWebSocket(/live/, () => {});
      await p.goto(nothing.url);
      await p.locator(".loading").first().waitFor();
    },
  ));
it("refused", () => shoot("refused", () => server.url + "/?dimension=nonsense", (p) => p.locator(".trouble").waitFor()));
it("stale", () =>
  shoot("stale", () => server.url + "/", drawn, async (p) => {
    await server.kill();
    await p.locator(".line.down").waitFor();
    await p.waitForTimeout(2_000);
    await server.run();
  }));
