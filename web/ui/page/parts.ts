import { html, nothing, svg, type TemplateResult } from "lit-html";
import type { Bucket, Count, Described, Problem, Update } from "../client";
import { estimated, explain, short, total } from "../common/format";
import { link } from "../common/safe";

/** number shows a number; its bounds are in its title. */
export function number(n: Count | undefined): TemplateResult {
  return html`<span class="n" title=${explain(n)} data-value=${n?.value ?? nothing}>${n ? short(n.value) : "–"}${estimated(n) ? html`<span class="pm" aria-hidden="true">±</span>` : nothing}</span>`;
}

/** big shows the number that matters, with what it is of. */
export function big(n: Count | undefined, label: string): TemplateResult {
  return html`<div class="big"><div class="big-n">${number(n)}</div><div class="label">${label}</div></div>`;
}

/** picture shows an item's picture, or the first letter of its title. */
export function picture(item: Described, title: string): TemplateResult {
  const image = link(item.image);
  const show = (shown: boolean) => (e: Event) => (e.target as HTMLElement).classList.toggle("gone", !shown);
  return html`<span class="image" aria-hidden="true">${[...title][0]?.toUpperCase()}${image ? html`<img src=${image} alt="" loading="lazy" referrerpolicy="no-referrer" @error=${show(false)} @load=${show(true)} />` : nothing}</span>`;
}

/** settled returns the values of a curve without those of buckets that still fill, at its end. */
export function settled(series: readonly Bucket[]): number[] {
  const last = series.findLastIndex((b) => b.complete);
  return series.slice(0, last < 2 ? undefined : last + 1).map((b) => total(b.counts)?.value ?? 0);
}

/** spark draws a curve on a scale that its list shares. */
export function spark(values: readonly number[] | undefined, most: number): TemplateResult {
  const width = 96;
  const height = 24;
  if (!values || values.length < 2) return html`<span class="spark"></span>`;
  const x = (i: number) => ((i / (values.length - 1)) * (width - 2) + 1).toFixed(1);
  const y = (v: number) => (height - 1.5 - (most > 0 ? v / most : 0) * (height - 4)).toFixed(1);
  const line = values.map((v, i) => `${x(i)},${y(v)}`).join(" ");
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" aria-hidden="true" focusable="false">
    ${svg`<polygon points="1,${height - 1} ${line} ${width - 1},${height - 1}" /><polyline points=${line} />`}
  </svg>`;
}

/** bar shows a share of the largest. */
export function bar(share: number): TemplateResult {
  return html`<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width=${(100 * Math.min(1, Math.max(0, share))).toFixed(1)} height="4" /></svg>`;
}

/** skeleton takes the place of rows that are not known yet. */
export function skeleton(rows: number): TemplateResult[] {
  return Array.from({ length: rows }, () => html`<li class="row loading" aria-hidden="true"><span class="grey"></span></li>`);
}

/** trouble says what is wrong with a question, where there is nothing else to show of it. */
export function trouble(update: Update<unknown>): TemplateResult | typeof nothing {
  const problem = update.line.problem ?? update.problem;
  if (!problem) return nothing;
  return html`<p class="trouble" role="alert"><strong>${headline(problem)}</strong> ${problem.detail}</p>`;
}

function headline(problem: Problem): string {
  if (problem.status === 401 || problem.status === 403) return "Not allowed.";
  if (problem.status === 422) return "Not kept any more.";
  if (problem.status >= 500 || problem.status === 429) return "The server can't answer now.";
  return "This can't be answered.";
}
