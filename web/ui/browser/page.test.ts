import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Answer, Count, Top } from "../client";
import { nameOf, why } from "../common/format";
import { violations } from "./axe";
import { launch } from "./chromium";
import { hostile } from "./hostile";
import { Server, until, views } from "./server";

let browser: Browser;
let server: Server;
let faults: string[] = [];

beforeAll(async () => {
  [browser, server] = await Promise.all([launch(), Server.start("--dimensions", "country", "--lateness", "1s")]);
  // Of three minutes ago, and the present ones let that minute be sealed: titles are known from then on.
  const time = Date.now() - 180_000;
  await server.send(...views("video-1", 5, { time: time - 90 * 60_000 })); // what rises is held against an hour before
  for (let i = 1; i <= 12; i++) await server.send(...views(`video-${i}`, 5 * i, { time, title: `Film ${i}`, url: `https://films.example/${i}` }));
  for (const [i, h] of hostile.entries()) await server.send(...views(h.item, 100 + i, { time, ...h }));
  await server.send(...views("video-1", 40));
  await until(async () => (await server.ask<{ items: unknown[] }>("/v1/items?prefix=")).items.length === 12 + hostile.length);
});
afterAll(async () => {
  await browser?.close();
  await server?.remove();
});
afterEach(() => {
  const said = faults;
  faults = [];
  expect(said).toEqual([]);
});

/** open opens a page, on which nothing may go wrong. */
async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
  const page = await browser.newPage({ locale: "en-GB", timezoneId: "Europe/Berlin", ...options });
  page.on("pageerror", (e) => faults.push(String(e)));
  page.on("dialog", (d) => faults.push(d.message()));
  // What cannot be loaded while the server is away, and pictures that are nowhere, are no fault of the page.
  page.on("console", (m) => m.type() === "error" && !m.text().includes("net::ERR") && faults.push(m.text()));
  await page.goto(server.url + path);
  return page;
}

/** table reads what a list shows: the numbers in full. */
function table(page: Page): Promise<{ key: string; title: string; first: number; second: number }[]> {
  return page.locator(".list .row[data-key]").evaluateAll((rows) =>
    rows.map((r) => ({
      key: (r as HTMLElement).dataset["key"]!,
      title: r.querySelector(".title")!.textContent!,
      first: Number(r.querySelector<HTMLElement>(".first .n")!.dataset["value"]),
      second: Number(r.querySelector<HTMLElement>(".second .n")!.dataset["value"]),
    })),
  );
}

const rows = (top: Top, by = "views") =>
  top.items.map((i) => {
    const both: [number, number] = [i.views.value, i.viewers!.value];
    if (by === "viewers") both.reverse();
    return { key: i.item ?? i.value!, title: nameOf(i.item ?? i.value!, i.title), first: both[0], second: both[1] };
  });

describe("the ranking", () => {
  it.each([
    ["/", "/v1/top?limit=25&last=1h", "views"],
    ["/?by=viewers&last=24h", "/v1/top?by=viewers&limit=25&last=24h", "viewers"],
    ["/?dimension=country", "/v1/top?limit=25&last=1h&dimension=country", "views"],
    ["/?dimension=country&value=FR&last=all", "/v1/top?limit=25&last=all&dimension=country&value=FR", "views"],
  ])("%s shows what the API answers", async (path, question, by) => {
    const page = await open(path);
    await page.locator(".list .row[data-key]").first().waitFor();
    expect(await table(page)).toEqual(rows(await server.ask<Top>(question), by));
    await page.close();
  });

  it("says why something rises", async () => {
    const page = await open("/?by=rising&last=15m");
    await page.locator(".row .why").first().waitFor();
    const top = await server.ask<Top>("/v1/top?by=rising&limit=25&last=15m");
    expect(top.items.length).toBeGreaterThan(5);
    expect(await table(page)).toEqual(rows(top));
    const said = await page.locator(".why").evaluateAll((all) => all.map((e) => e.textContent!.replace(/\s+/g, " ").trim()));
    expect(said).toEqual(top.items.map((i) => `▲ ${why(i, "15m")}`));
    await page.close();
  });

  it("moves by itself, and keeps its choices in the URL", async () => {
    const page = await open("/");
    await page.locator('.row[data-key="video-1"]').waitFor();
    await server.send(...views("newcomer", 300, { title: "Newcomer" }));
    await page.locator('.row[data-key="newcomer"] .fresh').waitFor();
    expect((await table(page))[0]!.key).toBe("newcomer");
    await page.getByRole("link", { name: "Viewers", exact: true }).click();
    await page.getByRole("combobox", { name: "By", exact: true }).selectOption("country");
    await page.locator(".row").getByText("DE", { exact: true }).click();
    expect(new URL(page.url()).search).toBe("?by=viewers&dimension=country&value=DE");
    await page.locator('.row[data-key="newcomer"]').waitFor();
    await page.goBack();
    await page.goBack();
    expect(new URL(page.url()).search).toBe("?by=viewers");
    await page.locator('.row[data-key="newcomer"]').waitFor();
    expect(await page.getByRole("link", { name: "Viewers", exact: true }).getAttribute("aria-current")).toBe("true");
    await page.close();
  });

  it("goes back in time", async () => {
    const at = Date.now() - 3 * 3_600_000;
    await server.send(...views("earlier", 7, { time: at - 600_000 }));
    const page = await open("/?at=" + at);
    await page.locator('.row[data-key="earlier"]').waitFor();
    expect(await table(page)).toEqual(rows(await server.ask<Top>(`/v1/top?limit=25&last=1h&at=${at}`)));
    await page.getByLabel("As of").press("End");
    expect(new URL(page.url()).search).toBe("");
    await page.locator('.row[data-key="video-12"]').waitFor();
    await page.close();
  });

  it("finds items", async () => {
    const page = await open("/");
    const field = page.getByRole("combobox", { name: "Find an item" });
    await field.pressSequentially("video-1");
    await page.getByRole("option", { name: "Film 12" }).waitFor();
    expect(await page.getByRole("listbox", { name: "Items" }).getByRole("option").count()).toBe(4); // 1, 10, 11, 12
    await field.press("ArrowDown");
    await field.press("ArrowDown");
    await field.press("Enter");
    await page.getByRole("heading", { name: "Film 10" }).waitFor();
    expect(new URL(page.url()).searchParams.get("item")).toBe("video-10");
    await page.close();
  });
});

describe("an item's page", () => {
  it("shows what the API answers", async () => {
    const page = await open("/item?item=video-12&last=1h");
    const sum = await server.ask<Answer>("/v1/viewers?item=video-12&last=1h");
    await page.locator(`.big .n[data-value="${sum.viewers!.value}"]`).first().waitFor();
    const shown = await page.locator(".big .n").evaluateAll((all) => all.map((n) => Number((n as HTMLElement).dataset["value"])));
    expect(shown).toEqual([sum.viewers!.value, sum.viewers!.value, sum.counts["view"]!.value]);

    await page.locator("tm-chart canvas").first().waitFor();
    await page.getByRole("button", { name: "Table" }).first().click();
    const series = (await server.ask<Answer>("/v1/viewers?item=video-12&last=1h&step=minute")).series!;
    const told = await page.getByRole("region", { name: "Viewers as a table" }).locator("tbody tr").evaluateAll((all) => all.map((tr) => [...tr.querySelectorAll("td")].map((td) => Number(td.textContent))));
    const numbers = (n: Count) => [n.value, n.low, n.high];
    // A minute may have begun between the two questions.
    const of = (all: number[][]) => all.filter(([n]) => n! > 0);
    expect(of(told)).toEqual(of(series.map((b) => numbers(b.viewers!))));

    const countries = (await server.ask<Answer>("/v1/viewers?item=video-12&last=1h&dimension=country")).values!;
    const broken = page.locator(".breakdown", { hasText: "Country" }).locator("tbody tr");
    await broken.first().waitFor();
    expect(await broken.evaluateAll((all) => all.map((tr) => [tr.querySelector("bdi")!.textContent, ...[...tr.querySelectorAll<HTMLElement>(".n")].map((n) => Number(n.dataset["value"]))]))).toEqual(
      countries.map((v) => [v.value, v.counts["view"]!.value, v.viewers!.value]),
    );
    await page.locator(".breakdown", { hasText: "What became" }).getByText("counted").first().waitFor();
    await page.close();
  });

  it("has a curve that the keyboard reads, and a drag narrows", async () => {
    const page = await open("/item?item=video-12&last=1h");
    const plot = page.getByRole("group", { name: "Viewers, a curve" });
    await plot.locator("canvas").waitFor();
    await plot.press("End");
    await page.locator("tm-chart output").first().getByText("so far").waitFor();
    const box = (await plot.locator(".u-over").boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.25, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 50, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/from=\d+&to=\d+/);
    const q = new URL(page.url()).searchParams;
    expect((Number(q.get("to")) - Number(q.get("from"))) / 60_000).toBeGreaterThan(10);
    await page.close();
  });
});

it("what events say is text, whatever it is", async () => {
  const page = await open("/?last=all", { viewport: { width: 360, height: 740 } });
  await page.locator(".row[data-key]").nth(15).waitFor();
  const shown = new Map((await table(page)).map((r) => [r.key, r.title]));
  for (const h of hostile) expect(shown.get(h.item)).toBe(nameOf(h.item, h.title));
  const narrow = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  expect(await narrow()).toBe(true);
  for (const h of hostile) {
    await page.goto(`${server.url}/item?${new URLSearchParams({ item: h.item }).toString()}`);
    await page.locator(".big .n[data-value]").nth(2).waitFor();
    await page.waitForFunction((title) => document.querySelector("h1")!.textContent === title, nameOf(h.item, h.title));
    expect(await narrow(), h.item).toBe(true);
    const links = await page.locator("a, img").evaluateAll((all) => all.map((e) => (e as HTMLAnchorElement).href || (e as HTMLImageElement).src));
    for (const l of links) expect(l).toMatch(/^https?:/);
  }
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  await page.close();
});

it("says when the server is away, and comes back without a reload", async () => {
  const page = await open("/");
  await page.locator(".line.live").waitFor();
  await page.evaluate(() => Object.assign(window, { same: true }));
  await server.kill();
  await page.locator(".line.down", { hasText: /last update \d+ s ago, trying again/ }).waitFor();
  await page.locator("main.stale").waitFor();
  expect((await table(page)).length).toBeGreaterThan(10); // old, but there
  await server.run();
  await server.send(...views("after", 400, { title: "After" }));
  await page.locator('.row[data-key="after"]').waitFor();
  await page.locator(".line.live").waitFor();
  expect(await page.locator("main.stale").count()).toBe(0);
  expect(await page.evaluate(() => "same" in window)).toBe(true);
  expect(await page.locator(".line").getAttribute("title")).toBe("by websocket");
  await page.close();
});

it("goes by server-sent events where sockets do not pass", async () => {
  const page = await browser.newPage();
  await page.routeWebSocket(/.*/, (ws) => ws.close());
  await page.goto(server.url);
  await page.locator(".line.live[title='by sse']").waitFor();
  await server.send(...views("streamed", 500));
  await page.locator('.row[data-key="streamed"]').waitFor();
  await page.close();
});

// lit-html 3.3.1 to 3.3.3 leave a comment behind for each row that goes (lit/lit#5298).
it("two hundred updates leave no node behind, and shift nothing", async () => {
  const page = await browser.newPage({ viewport: { width: 800, height: 700 } });
  const number = (n: number) => ({ value: n, low: n, high: n, method: "exact" });
  let say: ((n: number) => void) | undefined;
  await page.routeWebSocket(/live/, (ws) => {
    const watches = new Map<string, string>();
    ws.onMessage((m) => {
      const c = JSON.parse(String(m)) as { watch?: string; url: string };
      if (c.watch) watches.set(c.watch, c.url);
      if (watches.size === 3 && !say) {
        say = (n) => {
          for (const [watch, url] of watches) {
            const range = { from: "2026-01-01T00:00:00Z", to: "2026-01-01T01:00:00Z", complete: false, final: false, watermark: null };
            const items = Array.from({ length: 10 }, (_, i) => ({ item: "i" + ((i + n) % 13), views: number(1000 + ((i * 37 + n * 11) % 400)), viewers: number(900) })).sort((a, b) => b.views.value - a.views.value);
            const answer = url.startsWith("/v1/top")
              ? { by: "views", type: "view", certified: true, items, ...range }
              : url.startsWith("/v1/status")
                ? { version: "x", view_types: ["view"], dimensions: [], types: ["view"], kept: null, retention: [], logs: [] }
                : { type: "view", viewers: number(n), counts: { view: number(n) }, ...range };
            ws.send(JSON.stringify({ watch, id: String(n), answer }));
          }
        };
        say(0);
      }
    });
  });
  await page.route(/\/v1\/counts/, (r) => r.fulfill({ json: { items: [] } }));
  await page.goto(server.url);
  await page.locator(".row[data-key]").nth(9).waitFor();
  const shown = (n: number) => page.locator(`.sums .n[data-value="${n}"]`).first().waitFor();
  const devtools = await page.context().newCDPSession(page);
  const nodes = async () => {
    await page.waitForTimeout(250); // rows may be sliding
    await devtools.send("HeapProfiler.collectGarbage");
    const { nodes, jsEventListeners } = await devtools.send("Memory.getDOMCounters");
    return { nodes, jsEventListeners };
  };
  for (let n = 1; n <= 20; n++) say!(n);
  await shown(20);
  const before = await nodes();
  const boxes = () => page.locator("header, section, .list, .list > .row").evaluateAll((all) => all.map((e) => e.getBoundingClientRect().toJSON() as unknown));
  const layout = await boxes();
  for (let n = 21; n <= 220; n++) {
    say!(n);
    if (n % 10 === 0) await shown(n);
  }
  const after = await nodes();
  expect(after.nodes).toBeLessThanOrEqual(before.nodes + 20);
  expect(after.jsEventListeners).toBeLessThanOrEqual(before.jsEventListeners + 50);
  expect(await boxes()).toEqual(layout);
  await page.close();
});

describe("a reader of any kind", () => {
  it.each([
    ["/", "light"],
    ["/?by=viewers&dimension=country", "dark"],
    ["/item?item=video-12&last=1h", "light"],
    ["/item?item=video-12&last=1h", "dark"],
    ["/status", "light"],
    ["/status", "dark"],
  ] as const)("can use %s in %s", async (path, colorScheme) => {
    const page = await open(path, { colorScheme, bypassCSP: true, viewport: { width: 1000, height: 800 } });
    await page.locator(".line.live").waitFor();
    await page.locator(".n[data-value], .fact").first().waitFor();
    await page.waitForTimeout(300); // rows may be sliding
    expect(await violations(page)).toEqual([]);
    await page.close();
  });
});
