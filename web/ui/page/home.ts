import { html, nothing } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import { Damping, type Answer, type Answers, type Ranked, type Top } from "../client";
import { explain, full, nameOf, ranks, total, why } from "../common/format";
import type { Context } from "./context";
import { dimensions, past, ranges, segments, told, types } from "./controls";
import { bar, big, number, picture, settled, skeleton, spark, trouble } from "./parts";
import { ask, href, ranged, rangesOf, stepOf, type State } from "./state";

const limit = 25;

const keyOf = (r: Ranked) => r.item ?? r.value ?? "";

/** What was shown of one question: kept while its answers come in. */
class Ranking {
  private readonly damping = new Damping();
  private answer?: Top;
  private order: string[] = [];
  private seen?: Map<string, number>;

  constructor(
    readonly question: string,
    private readonly by: State["by"],
  ) {}

  number(r: Ranked): number {
    return this.by === "rising" ? (r.score ?? 0) : this.by === "viewers" ? (r.viewers?.value ?? 0) : r.views.value;
  }

  /** rows returns the items of an answer in the order to be shown. */
  rows(answer: Top): Ranked[] {
    const found = new Map(answer.items.map((r) => [keyOf(r), r]));
    if (answer !== this.answer) {
      this.order = this.damping.order(answer.items.map((r) => ({ key: keyOf(r), value: this.number(r) })));
      const first = this.seen === undefined;
      this.seen ??= new Map();
      for (const key of this.order) if (!this.seen.has(key)) this.seen.set(key, first ? 0 : Date.now());
      this.answer = answer;
    }
    return this.order.flatMap((key) => found.get(key) ?? []);
  }

  /** fresh tells whether an item was not there a minute ago. */
  fresh(key: string): boolean {
    return Date.now() - (this.seen?.get(key) ?? 0) < 60_000;
  }
}

let ranking = new Ranking("", "views");

/** home is what is seen most, and what rises. */
export function home(c: Context) {
  const s = c.state;
  const within = { type: s.type, dimension: s.dimension, value: s.value };
  const question = ask("top", { by: s.by, limit: String(limit), ...within, ...ranged(s) });
  const top = c.live.use<Top>(question);
  const site = c.live.use<Answer>(ask("viewers", { type: s.type, ...(s.value ? { dimension: s.dimension, value: s.value } : {}), ...ranged(s) }));
  if (ranking.question !== question) ranking = new Ranking(question, s.by);
  const rows = top.answer ? ranking.rows(top.answer) : undefined;
  return html`
    <section class="controls" aria-label="What is shown">
      ${segments("Ranking", s, [
        { text: "Views", change: { by: "views" }, chosen: s.by === "views" },
        { text: "Viewers", change: { by: "viewers" }, chosen: s.by === "viewers" },
        { text: "Rising", change: { by: "rising" }, chosen: s.by === "rising" },
      ])}
      ${ranges(c, s.by === "rising" ? rangesOf.rising : undefined)}
      <div class="picks">${types(c)} ${dimensions(c)}</div>
      ${past(c)}
    </section>
    <section class="sums" aria-label="The whole site">
      ${big(site.answer?.viewers, "viewers")} ${big(total(site.answer?.counts), s.type && s.type !== "*" ? s.type : s.type ? "events" : "views")}
      <p class="note">${told(c)}<br />Times in ${c.times.zone}</p>
    </section>
    <section aria-label="Ranking">
      ${head(c)} ${rows && top.answer ? list(c, rows, top.answer) : (top.problem ?? top.line.problem) ? trouble(top) : html`<ol class="list" role="list" aria-busy="true">${skeleton(10)}</ol>`}
    </section>`;
}

function head(c: Context) {
  const [first, second] = c.state.by === "viewers" ? ["Viewers", "Views"] : ["Views", "Viewers"];
  return html`<div class="list-head" aria-hidden="true"><span>${c.state.dimension && !c.state.value ? c.state.dimension : "Item"}</span><span class="head-n">${first}</span><span class="head-n2">${second}</span></div>`;
}

function list(c: Context, rows: Ranked[], answer: Top) {
  if (rows.length === 0) return empty(c, answer);
  const curves = sparks(c, rows);
  const most = Math.max(1, ...rows.map((r) => (c.state.by === "viewers" ? r.viewers?.value : r.views.value) ?? 0));
  const places = ranks(rows.map((r) => ranking.number(r)));
  return html`<ol class="list" role="list">${repeat(rows, keyOf, (r, i) => row(c, r, places[i]!, curves, most))}</ol>
    ${answer.certified ? nothing : html`<p class="note">The last places are not certain: what is not listed might be ahead of them.</p>`}
    ${answer.hint ? html`<p class="note">${answer.hint}</p>` : nothing}`;
}

function row(c: Context, r: Ranked, place: number, curves: { of: Map<string, number[]>; most: number }, most: number) {
  const s = c.state;
  const key = keyOf(r);
  const title = nameOf(key, r.title);
  const to = r.item === undefined ? href(s, { value: r.value ?? "" }) : href(s, { page: "item", item: r.item, dimension: "", value: "", last: s.last });
  const reason = why(r, s.last);
  const [first, second] = s.by === "viewers" ? [r.viewers, r.views] : [r.views, r.viewers];
  return html`<li class="row ${s.dimension && !s.value ? "of-value" : ""}" data-key=${key}>
    <span class="rank">${place}</span>
    ${s.dimension && !s.value ? nothing : picture(r, title)}
    <span class="text"><a class="title" href=${to} title=${title}><bdi>${title}</bdi></a>${ranking.fresh(key) ? html` <span class="fresh">new</span>` : nothing}
      ${reason ? html`<span class="why" title="Score ${full(r.score ?? 0)}: how far the count stands out from the ${explain(r.expected)} that the hour before, and the same hour of last week, let one expect. From 5 on it is listed."><span class="up" aria-hidden="true">▲</span> ${reason}</span>` : nothing}</span>
    ${s.dimension && !s.value ? bar((first?.value ?? 0) / most) : spark(curves.of.get(key), curves.most)}
    <span class="first">${number(first)}<span class="read"> ${s.by === "viewers" ? "viewers" : "views"}</span></span>
    <span class="second">${number(second)}<span class="read"> ${s.by === "viewers" ? "views" : "viewers"}</span></span>
  </li>`;
}

/** sparks returns the curves of the items of a list, on one scale. */
function sparks(c: Context, rows: Ranked[]): { of: Map<string, number[]>; most: number } {
  const s = c.state;
  const items = rows.flatMap((r) => r.item ?? []).sort();
  const of = new Map<string, number[]>();
  if (items.length > 0) {
    const step = s.last === "5m" || s.last === "1m" ? { last: "15m" } : {};
    const { answer } = c.slow.use<Answers>(ask("counts", { item: items, type: s.type, ...ranged(s), ...step, step: stepOf(s), tz: c.times.zone }));
    for (const a of answer ? ("items" in answer ? answer.items : [answer]) : []) of.set(a.item ?? "", settled(a.series ?? []));
  }
  return { of, most: Math.max(1, ...[...of.values()].flat()) };
}

function empty(c: Context, answer: Top) {
  const kept = c.status?.kept;
  const later = kept && Date.parse(kept.to) < Date.parse(answer.from) ? kept.to : undefined;
  const command = `curl -d '{"item": "video-1", "user": "ann"}' ${location.origin}/v1/events`;
  return html`<div class="empty">
    ${!kept
      ? html`<p>No views yet. Send one:</p><pre tabindex="0"><code>${command}</code></pre>`
      : c.state.by === "rising"
        ? html`<p>Nothing stands out in ${told(c)}.</p>`
        : html`<p>No views in ${told(c)}.</p>`}
    ${later ? html`<p>The newest are of ${c.times.at(later)}. <a href=${href(c.state, { at: String(Date.parse(later)) })}>Go there</a></p>` : nothing}
    ${answer.hint ? html`<p class="note">${answer.hint}</p>` : nothing}
  </div>`;
}
