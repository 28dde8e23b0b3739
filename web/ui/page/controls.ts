import { html, nothing } from "lit-html";
import { range } from "../common/format";
import type { Context } from "./context";
import { href, instant, rangesOf, type State } from "./state";

/** segments is a choice of a few, each a link. */
export function segments(label: string, s: State, choices: { text: string; change: Partial<State>; chosen: boolean }[]) {
  return html`<nav class="segments" aria-label=${label}>
    ${choices.map((c) => html`<a href=${href(s, c.change)} aria-current=${c.chosen ? "true" : nothing}>${c.text}</a>`)}
  </nav>`;
}

/** ranges is the choice of a range. */
export function ranges(c: Context, of: string[] = rangesOf.home) {
  const s = c.state;
  const choices = of.map((last) => ({ text: last === "all" ? "All" : last, change: { last, from: "", to: "" }, chosen: s.last === last && !s.from }));
  if (s.from && s.to) choices.push({ text: c.times.span(instant(s.from), instant(s.to)), change: {}, chosen: true } as (typeof choices)[0]);
  return segments("Range", s, choices);
}

/** pick is a choice of many. */
export function pick(label: string, chosen: string, options: { value: string; text: string }[], change: (value: string) => void) {
  return html`<label class="pick"><span>${label}</span>
    <select @change=${(e: Event) => change((e.target as HTMLSelectElement).value)}>
      ${options.map((o) => html`<option value=${o.value} .selected=${o.value === chosen}>${o.text}</option>`)}
    </select></label>`;
}

/** types is the choice of an event's type. */
export function types(c: Context) {
  const known = c.status?.types ?? [];
  const own = c.state.type && c.state.type !== "*" && !known.includes(c.state.type) ? [c.state.type] : [];
  const views = c.status?.view_types.join(", ") ?? "views";
  return pick("Type", c.state.type, [{ value: "", text: views }, ...[...known.filter((t) => !c.status?.view_types.includes(t)), ...own].map((t) => ({ value: t, text: t })), { value: "*", text: "all types" }], (type) => c.go({ type }));
}

/** dimensions is the choice of what to break down by. */
export function dimensions(c: Context) {
  const known = c.status?.dimensions ?? [];
  if (known.length === 0 && !c.state.dimension) return nothing;
  const own = c.state.dimension && !known.includes(c.state.dimension) ? [c.state.dimension] : [];
  return html`${pick("By", c.state.dimension, [{ value: "", text: "item" }, ...[...known, ...own].map((d) => ({ value: d, text: d }))], (dimension) => c.go({ dimension, value: "" }))}
  ${c.state.value ? html`<a class="chip" href=${href(c.state, { value: "" })} aria-label="Not only ${c.state.value}"><bdi>${c.state.value}</bdi> ✕</a>` : nothing}`;
}

/** past is the slider that goes back in time. */
export function past(c: Context) {
  const from = c.status?.kept ? Date.parse(c.status.kept.from) : Date.now() - 86_400_000;
  const now = Date.now();
  const minute = 60_000;
  const first = Math.ceil(from / minute);
  const last = Math.max(first + 1, Math.floor(now / minute));
  const chosen = c.state.at ? instant(c.state.at) : undefined;
  const at = chosen === undefined ? last : Math.min(last, Math.max(first, Math.round(chosen / minute)));
  const told = (v: number) => (v >= last ? "now" : c.times.at(v * minute));
  const to = (v: number, replace: boolean) => c.go({ at: v >= last ? "" : String(v * minute) }, replace);
  return html`<div class="past">
    <label><span>As of</span>
      <input type="range" min=${first} max=${last} .value=${String(at)} aria-valuetext=${told(at)} @input=${(e: Event) => to(Number((e.target as HTMLInputElement).value), true)} /></label>
    <span class="past-at">${chosen === undefined ? "now" : c.times.at(chosen)}</span>
    ${chosen === undefined ? nothing : html`<a class="chip" href=${href(c.state, { at: "" })}>back to now</a>`}
  </div>`;
}

/** told says in words which range is shown. */
export function told(c: Context): string {
  const s = c.state;
  if (s.from && s.to) return c.times.span(instant(s.from), instant(s.to));
  const end = s.at ? `until ${c.times.at(instant(s.at))}` : "until now";
  return s.last === "all" ? `all time, ${end}` : `the last ${range(s.last)}, ${end}`;
}
