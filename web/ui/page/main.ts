import { html, nothing, render } from "lit-html";
import type { Line } from "../client";
import { duration } from "../common/format";
import { slide } from "../common/motion";
import type { Context, Status } from "./context";
import { home } from "./home";
import { item } from "./item";
import { Live } from "./live";
import "./page.css";
import type { Search } from "./search";
import "./search";
import { href, read, type State } from "./state";
import { status } from "./status";
import { Times } from "./times";

// A key is kept for this tab alone.
const key = sessionStorage.getItem("tidemark-key") ?? undefined;
const options = key ? { key } : {};

let drawn = false;
/** soon draws once for all that happens at a time. */
function soon(): void {
  if (drawn) return;
  drawn = true;
  // Not by requestAnimationFrame: a page in the background has to say what is old too.
  queueMicrotask(() => {
    drawn = false;
    draw();
  });
}

const live = new Live(soon, options);
const slow = new Live(soon, { ...options, ways: ["polling"], pollEvery: 15_000 });
let shown = "";
let times: Times | undefined; // making one is slow

function go(change: Partial<State>, replace = false): void {
  visit(href(read(new URL(location.href)), change), replace);
}

function visit(to: string, replace = false): void {
  const other = new URL(to, location.href).pathname !== location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  draw();
  if (other) scrollTo(0, 0);
}

function draw(): void {
  const state = read(new URL(location.href));
  const asked = live.use<Status>("/v1/status");
  if (times?.asked !== state.tz) times = new Times(state.tz);
  const c: Context = { state, live, slow, go, times, status: asked.answer };
  const moved = shown === location.href ? slide(document) : () => {};
  shown = location.href;
  const view = { home, item, status }[state.page];
  const title = { home: "Tidemark", item: `${state.item} · Tidemark`, status: "Status · Tidemark" }[state.page];
  if (document.title !== title) document.title = title; // setting it makes a node, each time
  const problem = asked.line.problem ?? asked.problem;
  render(
    html`<header class="top">
        <a class="brand" href="/"><img src="/icon.svg" alt="" width="24" height="24" /><span>Tidemark</span></a>
        <tm-search .find=${find} .go=${(i: string) => go({ page: "item", item: i, dimension: "", value: "" })}></tm-search>
        <nav aria-label="Pages"><a href="/" aria-current=${state.page === "home" ? "page" : nothing}>Trending</a><a href="/status" aria-current=${state.page === "status" ? "page" : nothing}>Status</a></nav>
        ${line(asked.line)}
      </header>
      <main class=${asked.line.state === "down" || asked.line.state === "failed" ? "stale" : ""}>${problem?.status === 401 ? keyForm(problem.detail) : view(c)}</main>`,
    document.body,
  );
  moved();
  live.settle();
  slow.settle();
}

/** line says whether what is shown is true now. Its place is always there. */
function line(l: Line) {
  const age = live.confirmed === undefined ? undefined : Date.now() - live.confirmed;
  const text = {
    connecting: "connecting",
    live: l.by === "polling" ? "every few seconds" : "live",
    down: html`${age === undefined ? "no connection" : `last update ${duration(age)} ago`}<span class="more">, trying again</span>`,
    failed: l.problem?.detail ?? "ended",
  }[l.state];
  return html`<p class="line ${l.state}" role="status" title=${l.by ? `by ${l.by}` : nothing}><span class="dot" aria-hidden="true"></span>${text}</p>`;
}

function keyForm(why: string) {
  const enter = (e: SubmitEvent) => {
    e.preventDefault();
    sessionStorage.setItem("tidemark-key", new FormData(e.target as HTMLFormElement).get("key") as string);
    location.reload();
  };
  return html`<form class="key" @submit=${enter}><h1>A key is needed</h1><p>${why}</p>
    <label>Read key <input name="key" type="password" required autocomplete="off" /></label> <button>Enter</button></form>`;
}

async function find(prefix: string) {
  const q = new URLSearchParams({ prefix, limit: "8", ...(key ? { key } : {}) });
  const response = await fetch("/v1/items?" + q.toString(), { cache: "no-store" });
  if (!response.ok) throw new Error(response.statusText);
  return ((await response.json()) as { items: Awaited<ReturnType<Search["find"]>> }).items;
}

addEventListener("popstate", draw);
addEventListener("click", (e) => {
  const a = (e.target as Element).closest?.("a");
  if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || a.target || a.origin !== location.origin) return;
  if (!["/", "/item", "/status"].includes(a.pathname)) return;
  e.preventDefault();
  visit(a.href);
});
// What is old grows older; "new" and "now" pass.
setInterval(() => {
  if (live.line?.state !== "live" || new Date().getSeconds() % 10 === 0) soon();
}, 1000);
draw();
