import { html, nothing } from "lit-html";
import { duration, full } from "../common/format";
import type { Context, Status } from "./context";
import { outcomes } from "./item";
import { ask } from "./state";
import { trouble } from "./parts";

/** status is what an operator wants to see at a glance. */
export function status(c: Context) {
  const update = c.live.use<Status>("/v1/status");
  const s = update.answer;
  if (!s) return html`<h1>Status</h1>${trouble(update)}`;
  const lagging = Math.max(0, ...s.logs.flatMap((l) => (l.reading ? (l.partitions ?? []).map((p) => (p.watermark ? Date.now() - Date.parse(p.watermark) : 0)) : [])));
  return html`<h1>Status</h1>
    <section class="sums facts" aria-label="At a glance">
      ${fact(s.version, "version")}
      ${fact(s.kept ? c.times.span(s.kept.from, s.kept.to) : "nothing yet", "kept")}
      ${fact(s.logs.some((l) => l.reading) ? duration(lagging) : "–", "the watermark is behind")}
      <p class="note">Times in ${c.times.zone}</p>
    </section>
    <section class="breakdowns">
      <div class="breakdown wide"><h3>Partitions</h3>${s.logs.map((l) => log(c, l))}</div>
      ${sinks(s.sinks)}
      <div class="breakdown"><h3>Retention</h3>
        <table><thead><tr><th scope="col">Periods of</th><th scope="col">for</th><th scope="col">from</th></tr></thead>
        <tbody>${s.retention.map((r) => html`<tr><th scope="row">${r.period}</th><td>${kept(r.for)}</td><td>${r.from ? c.times.at(r.from) : "the beginning"}</td></tr>`)}</tbody></table></div>
      ${outcomes(c, ask("outcomes", { last: "1h" }))}
    </section>`;
}

function fact(text: string, label: string) {
  return html`<div class="big"><div class="fact">${text}</div><div class="label">${label}</div></div>`;
}

/** kept writes a duration of Go in the largest unit that is whole. */
function kept(text: string): string {
  const h = /^(\d+)h0m0s$/.exec(text);
  if (!h) return text;
  const hours = Number(h[1]);
  return hours % 24 === 0 ? `${hours / 24} days` : `${hours} h`;
}

function log(c: Context, l: Status["logs"][0]) {
  return html`<p class="note">${l.names.join(", ")}: ${l.reading ? "being read" : l.done ? "done" : "not being read"}</p>
    ${l.partitions?.length
      ? html`<div class="scroll" tabindex="0" role="region" aria-label="Partitions of ${l.names[0]}"><table>
          <thead><tr><th scope="col">Partition</th><th scope="col" class="num">Position</th><th scope="col" class="num">Not sealed</th><th scope="col" class="num">Open minutes</th><th scope="col">Watermark</th></tr></thead>
          <tbody>${l.partitions.map((p) => html`<tr><th scope="row">${p.partition}</th><td class="num">${full(p.position)}</td><td class="num">${full(p.position - p.sealed)}</td><td class="num">${p.open_windows}</td><td class="when">${p.watermark ? c.times.at(p.watermark) : "–"}</td></tr>`)}</tbody>
        </table></div>`
      : nothing}`;
}

/** sinks shows whatever is told of them: a row each. */
function sinks(all: Record<string, unknown>[] | undefined) {
  if (!all?.length) return nothing;
  const columns = [...new Set(all.flatMap((s) => Object.keys(s)))];
  const text = (v: unknown) => (v === null || v === undefined ? "–" : typeof v === "object" ? JSON.stringify(v) : String(v));
  return html`<div class="breakdown wide"><h3>Sinks</h3><div class="scroll" tabindex="0" role="region" aria-label="Sinks"><table>
    <thead><tr>${columns.map((k) => html`<th scope="col">${k.replaceAll("_", " ")}</th>`)}</tr></thead>
    <tbody>${all.map((s) => html`<tr>${columns.map((k) => html`<td>${text(s[k])}</td>`)}</tr>`)}</tbody></table></div></div>`;
}
