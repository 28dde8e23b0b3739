import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch } from "./chromium";
import { Server, until, views } from "./server";
import { Site } from "./site";

// A server with keys: pages ask for one, widgets and count.js bring theirs.

let browser: Browser;
let server: Server;
let reader: string;
let question: string;
let sender: string;

beforeAll(async () => {
  [browser, server] = await Promise.all([launch(), Server.start("--allow-origins", "*")]);
  await server.send(...views("film", 7));
  reader = server.key("reader");
  question = server.key("widget", "--question", "/v1/top?by=views&last=5m&limit=3");
  sender = server.key("sender", "--scope", "ingest");
  await until(async () => (await fetch(server.url + "/v1/top")).status === 401);
});
afterAll(async () => {
  await browser?.close();
  await server?.remove();
});

it("the page asks for a key, and keeps it for the tab", async () => {
  const page = await browser.newPage();
  await page.goto(server.url + "/?last=5m");
  await page.getByLabel("Read key").fill(reader);
  await page.getByRole("button", { name: "Enter" }).click();
  await page.locator('.row[data-key="film"]').waitFor();
  expect(await page.locator(".line").getAttribute("title")).toBe("by websocket");
  await page.getByRole("combobox", { name: "Find an item" }).pressSequentially("fi");
  await page.getByRole("link", { name: "film" }).click();
  await page.locator(".breakdown", { hasText: "What became" }).getByText("counted").first().waitFor();
  expect(page.url()).not.toContain(reader);
  await page.close();
});

it("a widget and count.js have what their keys allow", async () => {
  const site = await Site.start(
    () => `<!doctype html><script defer src="${server.url}/count.js" data-item="sent" data-key="${sender}"></script><script type="module" src="${server.url}/widget.js"></script>
      <tidemark-trending last="5m" limit="3" key="${question}"></tidemark-trending><tidemark-viewers key="${question}"></tidemark-viewers>`,
  );
  const page = await browser.newPage();
  await page.goto(site.url);
  await page.locator('tidemark-trending [data-key="sent"]').waitFor();
  // Bound to the question above, the key answers no other; the widget says so.
  await page.locator("tidemark-viewers .note", { hasText: /\w+/ }).waitFor();
  await page.close();
  await site.end();
});
