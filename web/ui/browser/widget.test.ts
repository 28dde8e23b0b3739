import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer, Top } from "../client";
import { nameOf } from "../common/format";
import { violations } from "./axe";
import { launch } from "./chromium";
import { hostile } from "./hostile";
import { Server, until, views } from "./server";
import { Site } from "./site";

let browser: Browser;
let server: Server;

beforeAll(async () => {
  [browser, server] = await Promise.all([launch(), Server.start("--lateness", "1s", "--allow-origins", "*")]);
  const time = Date.now() - 180_000;
  for (const [i, h] of hostile.entries()) await server.send(...views(h.item, 30 + i, { time, ...h }));
  await server.send(...views("film", 10, { time, title: "A film", url: "/films/1", image: "https://films.example/1.jpg" }));
  await server.send(...views("film", 40));
  await until(async () => (await server.ask<{ items: unknown[] }>("/v1/items?prefix=")).items.length === 1 + hostile.length);
});
afterAll(async () => {
  await browser?.close();
  await server?.remove();
});

/** visit opens a page of another site. */
async function visit(site: Site, path = "/", init?: () => void): Promise<{ page: Page; faults: string[] }> {
  const page = await browser.newPage({ viewport: { width: 400, height: 800 } });
  const faults: string[] = [];
  page.on("pageerror", (e) => faults.push(String(e)));
  page.on("dialog", (d) => faults.push(d.message()));
  page.on("console", (m) => m.type() === "error" && !m.text().includes("net::ERR") && faults.push(m.text()));
  if (init) await page.addInitScript(init);
  await page.goto(site.url + path);
  return { page, faults };
}

describe("the widget on a page of another origin", () => {
  let site: Site;
  const html = () => `<!doctype html><html lang="en"><title>A site</title><meta name="viewport" content="width=device-width">
    <script type="module" src="${server.url}/widget.js"></script><h1>A site</h1>
    <p><tidemark-viewers item="film" last="15m"></tidemark-viewers></p>
    <tidemark-trending by="viewers" last="15m" limit="12"></tidemark-trending><p id="below">below</p>`;

  beforeAll(async () => {
    // A site that is strict: no style, and scripts and questions of one other origin.
    const socket = server.url.replace("http", "ws");
    site = await Site.start(html, `default-src 'none'; script-src ${server.url}; connect-src ${server.url} ${socket}; img-src https:`);
  });
  afterAll(() => site.end());

  it("shows what the API answers, as text, without moving the page", async () => {
    const { page, faults } = await visit(site);
    const below = () => page.locator("#below").evaluate((e) => e.getBoundingClientRect().top);
    await page.locator("tidemark-trending li").nth(11).waitFor({ state: "attached" });
    const first = await below();
    await page.locator("tidemark-trending [data-key]").nth(8).waitFor();
    const top = await server.ask<Top>("/v1/top?by=viewers&last=15m&limit=12");
    const shown = await page.locator("tidemark-trending [data-key]").evaluateAll((rows) =>
      rows.map((r) => ({ key: (r as HTMLElement).dataset["key"], title: r.querySelector(".title")!.textContent, n: r.querySelector(".read")!.textContent })),
    );
    expect(shown).toEqual(top.items.map((i) => ({ key: i.item, title: nameOf(i.item!, i.title), n: `${i.viewers!.value.toLocaleString("en")} viewers` })));
    expect(await below()).toBe(first);
    const viewers = await server.ask<Answer>("/v1/viewers?item=film&last=15m");
    expect(await page.locator("tidemark-viewers").evaluate((e) => e.shadowRoot!.textContent!.replace(/\s+/g, " ").trim())).toBe(`${viewers.viewers!.value} watching now`);
    const links = await page.locator("tidemark-trending a").evaluateAll((all) => all.map((a) => (a as HTMLAnchorElement).href));
    expect(links).toContain(site.url + "/films/1"); // as the site means it
    for (const l of links) expect(l).toMatch(/^https?:/);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(await page.evaluate(() => "hacked" in window)).toBe(false);
    expect(faults).toEqual([]);
    await page.close();
  });

  it("can be used by everybody", async () => {
    const { page } = await visit(await open());
    await page.locator("tidemark-trending [data-key]").nth(8).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.close();
  });

  /** open is the same site without a policy, which would keep axe out. */
  async function open(): Promise<Site> {
    const free = await Site.start(html);
    afterAll(() => free.end());
    return free;
  }

  it("asks something else when its attributes change, and nothing once it is gone", async () => {
    const { page, faults } = await visit(site);
    await page.locator("tidemark-trending [data-key]").first().waitFor();
    await page.locator("tidemark-trending").evaluate((e) => e.setAttribute("limit", "2"));
    await page.waitForFunction(() => document.querySelector("tidemark-trending")!.shadowRoot!.querySelectorAll("li").length === 2);
    await page.evaluate(() => document.querySelectorAll("tidemark-trending, tidemark-viewers").forEach((e) => e.remove()));
    await until(async () => /tidemark_live_clients 0\b/.test(await (await fetch(server.url + "/metrics")).text()));
    expect(faults).toEqual([]);
    await page.close();
  });

  it("says how old it is while the server is away, and comes back", async () => {
    const { page } = await visit(site);
    await page.locator("tidemark-trending [data-key]").first().waitFor();
    await server.kill();
    await page.locator("tidemark-trending .note", { hasText: /last update \d+ s ago, trying again/ }).waitFor();
    await page.locator("tidemark-viewers[stale]").waitFor();
    await server.run();
    await server.send(...views("after", 90));
    await page.locator('tidemark-trending [data-key="after"]').waitFor();
    expect(await page.locator("tidemark-trending[stale]").count()).toBe(0);
    await page.close();
  });
});

describe("count.js on a page of another origin", () => {
  const html = (attributes: string) => `<!doctype html><title>Article</title><script defer src="${server.url}/count.js" ${attributes}></script>`;
  const counted = async (item: string) => {
    const a = await server.ask<Answer>(`/v1/viewers?${new URLSearchParams({ item, last: "5m" }).toString()}`);
    return [a.counts["view"]!.value, a.viewers!.value];
  };
  const site = async (attributes: string) => {
    const s = await Site.start(() => html(attributes));
    afterAll(() => s.end());
    return s;
  };

  it("counts a view a page, and one a change of address", async () => {
    const s = await site("");
    const { page, faults } = await visit(s, "/articles/1?utm=x#top");
    await until(async () => (await counted("/articles/1"))[0] === 1);
    await page.evaluate(() => {
      history.replaceState(null, "", location.href + "x"); // the same page
      history.pushState(null, "", "/articles/2");
    });
    await until(async () => (await counted("/articles/2"))[0] === 1);
    await page.reload();
    await until(async () => (await counted("/articles/2"))[0] === 2);
    expect(await counted("/articles/1")).toEqual([1, 1]);
    expect(await counted("/articles/2")).toEqual([2, 1]); // the same person
    expect(faults).toEqual([]);
    await page.close();
  });

  it("counts what is named, by whom is named", async () => {
    const { page } = await visit(await site('data-item="named" data-user="ann"'));
    await until(async () => (await counted("named"))[0] === 1);
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
    await page.close();
  });

  it("keeps and sends nothing about who asks not to be followed", async () => {
    const gpc = () => Object.defineProperty(navigator, "globalPrivacyControl", { value: true });
    const anonymous = await visit(await site('data-item="anonymous" data-user="ann"'), "/", gpc);
    const silent = await visit(await site('data-item="silent" data-signals="silent"'), "/", gpc);
    const none = await visit(await site('data-item="none" data-visitor="none"'));
    const ignored = await visit(await site('data-item="ignored" data-signals="ignore"'), "/", gpc);
    await until(async () => (await Promise.all(["anonymous", "none", "ignored"].map(counted))).every(([views]) => views === 1));
    expect(await counted("anonymous")).toEqual([1, 0]);
    expect(await counted("none")).toEqual([1, 0]);
    expect(await counted("ignored")).toEqual([1, 1]);
    expect(await counted("silent")).toEqual([0, 0]);
    for (const { page } of [anonymous, silent, none]) expect(await page.evaluate(() => localStorage.length)).toBe(0);
    for (const { page } of [anonymous, silent, none, ignored]) await page.close();
  });

  it("does not count a page that nobody sees", async () => {
    const hidden = () => Object.defineProperty(document, "visibilityState", { get: () => (window as { seen?: boolean }).seen ? "visible" : "hidden" });
    const { page } = await visit(await site('data-item="background"'), "/", hidden);
    await page.waitForLoadState("networkidle");
    expect(await counted("background")).toEqual([0, 0]);
    await page.evaluate(() => {
      Object.assign(window, { seen: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await until(async () => (await counted("background"))[0] === 1);
    await page.close();
  });
});
