import { html, nothing } from "lit-html";
import type { Answer, Bucket, Count } from "../client";
import { nameOf, total } from "../common/format";
import { link } from "../common/safe";
import "./chart";
import type { Context } from "./context";
import { past, ranges, told, types } from "./controls";
import { bar, big, number, picture, trouble } from "./parts";
import { ask, ranged, stepOf } from "./state";

/** What became of records, of /v1/outcomes. */
export interface Outcomes {
  records: Count;
  outcomes: { outcome: string; reason?: string; records: Count }[];
}

/** item is what is known of one item. */
export function item(c: Context) {
  const s = c.state;
  const subject = { item: s.item, type: s.type };
  const now = c.live.use<Answer>(ask("viewers", { ...subject, last: "5m", at: s.at }));
  const sum = c.live.use<Answer>(ask("viewers", { ...subject, ...ranged(s) }));
  const series = c.slow.use<Answer>(ask("viewers", { ...subject, ...ranged(s), step: stepOf(s), tz: c.times.zone }));
  const a = sum.answer ?? now.answer;
  const name = nameOf(s.item, a?.title);
  const href = link(a?.url);
  return html`
    <header class="subject">
      ${picture(a ?? {}, name)}
      <div class="text"><h1 title=${name}><bdi>${name}</bdi></h1>
        <p class="note"><bdi>${s.item}</bdi>${href ? html` · <a href=${href} rel="noopener noreferrer">${new URL(href).host}</a>` : nothing}</p></div>
    </header>
    <section class="controls" aria-label="What is shown">${ranges(c)}<div class="picks">${types(c)}</div>${past(c)}</section>
    <section class="sums" aria-label="In numbers">
      ${big(now.answer?.viewers, s.at ? "watching then" : "watching now")} ${big(sum.answer?.viewers, "viewers")} ${big(total(sum.answer?.counts), s.type && s.type !== "*" ? s.type : "views")}
      <p class="note">${told(c)}<br />Times in ${c.times.zone}</p>
    </section>
    ${sum.answer ? nothing : trouble(sum)}
    <section class="charts" aria-label="Over time">${chart(c, "Viewers", series.answer?.series, (b) => b.viewers)} ${chart(c, "Views", series.answer?.series, (b) => total(b.counts))}
      ${series.answer ? nothing : trouble(series)}</section>
    <section class="breakdowns" aria-label="Broken down">
      ${c.status?.dimensions.map((d) => breakdown(c, d))} ${outcomes(c, ask("outcomes", { item: s.item, ...ranged(s) }))}
    </section>`;
}

function chart(c: Context, label: string, series: Bucket[] | undefined, n: (b: Bucket) => Count | undefined) {
  return html`<tm-chart .label=${label} .times=${c.times} .chose=${(from: number, to: number) => c.go({ from: String(from), to: String(to), last: "" })}
    .points=${(series ?? []).map((b) => ({ start: b.start, end: b.end, complete: b.complete, n: n(b) }))}></tm-chart>`;
}

function breakdown(c: Context, dimension: string) {
  const { answer } = c.slow.use<Answer>(ask("viewers", { item: c.state.item, type: c.state.type, ...ranged(c.state), dimension }));
  const values = (answer?.values ?? []).slice(0, 10);
  const most = Math.max(1, ...values.map((v) => total(v.counts)?.value ?? 0));
  return html`<div class="breakdown"><h3>${dimension}</h3>
    <table><thead><tr><th scope="col">${dimension}</th><th scope="col" class="num">Views</th><th scope="col" class="num">Viewers</th></tr></thead>
    <tbody>${values.map((v) => html`<tr><th scope="row"><bdi>${v.value || "(none)"}</bdi>${bar((total(v.counts)?.value ?? 0) / most)}</th><td class="num">${number(total(v.counts))}</td><td class="num">${number(v.viewers)}</td></tr>`)}</tbody></table>
    ${answer && values.length === 0 ? html`<p class="note">Nothing in this range</p>` : nothing}</div>`;
}

const words: Record<string, string> = {
  counted: "counted",
  late: "counted, though late",
  duplicate: "the same event again",
  repeat: "the same view again",
  bot: "by bots",
  future: "from the future",
  too_old: "too old",
  malformed: "malformed",
};

/** outcomes says what became of the records. */
export function outcomes(c: Context, question: string) {
  const { answer } = c.slow.use<Outcomes>(question);
  const rows = (answer?.outcomes ?? []).filter((o) => o.records.value > 0);
  const most = Math.max(1, ...rows.map((o) => o.records.value));
  return html`<div class="breakdown"><h3>What became of the events</h3>
    <table><thead><tr><th scope="col">Outcome</th><th scope="col" class="num">Events</th></tr></thead>
    <tbody>${rows.map((o) => html`<tr><th scope="row">${words[o.outcome] ?? o.outcome}${o.reason ? html` <span class="note">${o.reason}</span>` : nothing}${bar(o.records.value / most)}</th><td class="num">${number(o.records)}</td></tr>`)}</tbody></table>
    ${answer && rows.length === 0 ? html`<p class="note">No events in this range</p>` : nothing}</div>`;
}
