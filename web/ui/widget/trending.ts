import { repeat } from "lit-html/directives/repeat.js";
import { Damping, type Ranked, type Top, type Update } from "../client";
import { explain, full, nameOf, range, ranks, short, why } from "../common/format";
import { slide } from "../common/motion";
import { link } from "../common/safe";
import { common, html, nothing, Watching } from "./base";

/** shown has a picture that cannot be loaded give way to the letter behind it. */
const shown = (there: boolean) => (e: Event) => (e.target as HTMLElement).classList.toggle("gone", !there);

const keyOf = (item: Ranked) => item.item ?? item.value ?? "";

/**
 * <tidemark-trending by="rising" last="1h" limit="10">: a list that moves. Other
 * attributes: type, dimension and value (within it), label (its heading for screen
 * readers), images="none", server, key.
 */
export class Trending extends Watching<Top> {
  static readonly observedAttributes = ["by", "last", "limit", "type", "dimension", "value", "label", "images", "server", "key"];
  private damping = new Damping();
  private damped?: Top;
  private order: string[] = [];

  private get limit(): number {
    const n = Math.floor(Number(this.attribute("limit", "10")));
    return Math.min(100, Math.max(1, n || 10));
  }

  protected override url(): string {
    this.damping = new Damping();
    this.damped = undefined;
    const question = new URLSearchParams({
      by: this.attribute("by", "views"),
      last: this.attribute("last", "1h"),
      limit: String(this.limit),
      ...this.given("type", "dimension", "value"),
    });
    return new URL("/v1/top?" + question.toString(), this.attribute("server", import.meta.url)).href;
  }

  protected override changed({ answer }: Update<Top>): void {
    if (!answer || answer === this.damped) return;
    this.damped = answer;
    this.order = this.damping.order(answer.items.map((i) => ({ key: keyOf(i), value: this.number(i) })));
  }

  private number(item: Ranked): number {
    const by = this.attribute("by", "views");
    return by === "rising" ? (item.score ?? 0) : by === "viewers" ? (item.viewers?.value ?? 0) : item.views.value;
  }

  protected override draw(): void {
    const moved = slide(this.root);
    super.draw();
    moved();
  }

  protected override view(age: number | undefined) {
    const last = this.attribute("last", "1h");
    const by = this.attribute("by", "views");
    const answer = this.update.answer;
    const found = new Map(answer?.items.map((i) => [keyOf(i), i]));
    const rows = this.order.flatMap((key) => found.get(key) ?? []).slice(0, this.limit);
    const places = ranks(rows.map((i) => this.number(i)));
    const pictures = this.attribute("images", "") !== "none" && rows.some((i) => link(i.image, document.baseURI));
    const missing = Math.max(0, this.limit - rows.length);
    const empty = answer !== undefined && rows.length === 0;
    return html`
      <ol part="list" role="list" aria-label=${this.attribute("label", by === "rising" ? "Rising now" : `Most ${by} in ${range(last)}`)}>
        ${repeat(rows, keyOf, (item, i) => this.row(item, places[i]!, pictures, by, last))}
        ${Array.from({ length: missing }, () => html`<li aria-hidden="true" class=${answer ? "" : "loading"}><span></span></li>`)}
      </ol>
      <div part="status" class="note" role="status">${empty && age === undefined ? (by === "rising" ? "nothing stands out now" : `nothing in ${range(last)}`) : this.note(age)}</div>`;
  }

  private row(item: Ranked, rank: number, pictures: boolean, by: string, last: string) {
    const title = nameOf(keyOf(item), item.title);
    const href = link(item.url, document.baseURI);
    const image = link(item.image, document.baseURI);
    const n = by === "viewers" ? item.viewers : item.views;
    const unit = by === "viewers" ? "viewers" : "views";
    const reason = why(item, last);
    const name = html`<bdi>${title}</bdi>`;
    return html`<li part="row" data-key=${keyOf(item)}>
      <span part="rank" class="rank">${rank}</span>
      ${pictures ? html`<span part="image" class="image" aria-hidden="true">${[...title][0]?.toUpperCase()}${image ? html`<img src=${image} alt="" loading="lazy" referrerpolicy="no-referrer" @error=${shown(false)} @load=${shown(true)} />` : nothing}</span>` : nothing}
      <span class="text">
        ${href ? html`<a part="title" class="title" href=${href} title=${title}>${name}</a>` : html`<span part="title" class="title" title=${title}>${name}</span>`}
        ${reason ? html`<span part="why" class="why">${reason}</span>` : nothing}
      </span>
      <span part="number" class="n" title="${explain(n)} ${unit}"><span aria-hidden="true">${by === "rising" ? html`<span class="up">▲</span> ` : nothing}${n ? short(n.value) : "–"}</span><span class="read">${n ? full(n.value) : "unknown"} ${unit}</span></span>
    </li>`;
  }

  protected override style$(): string {
    return (
      common +
      `
:host { background: var(--tidemark-background, transparent); }
ol { list-style: none; margin: 0; padding: 0; }
li { display: flex; align-items: center; gap: var(--tidemark-gap, .75em); height: var(--tidemark-row, 3.25em); box-sizing: border-box; border-bottom: 1px solid var(--hair); }
li:last-child { border-bottom-color: transparent; }
.rank { flex: none; width: 1.75em; text-align: right; color: var(--muted); font-size: .875em; }
.image { flex: none; width: 2.5em; height: 2.5em; border-radius: var(--tidemark-radius, 4px); overflow: hidden; position: relative; line-height: 2.5em; text-align: center; color: var(--muted); background: color-mix(in srgb, currentColor 10%, transparent); }
img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: cover; }
img.gone { visibility: hidden; }
.text { flex: 1; min-width: 0; line-height: 1.3; }
.title { color: inherit; text-decoration: none; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; overflow-wrap: anywhere; }
.title:has(+ .why) { -webkit-line-clamp: 1; }
a.title:hover, a.title:focus-visible { text-decoration: underline; color: var(--accent); }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.why { display: block; color: var(--muted); font-size: .8125em; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.n { flex: none; font-weight: 600; text-align: right; }
.up { color: var(--rise); font-size: .75em; }
.read { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.note { height: 1.6em; line-height: 1.6em; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.loading span { flex: 1; height: .75em; border-radius: 4px; background: var(--hair); margin-inline-start: 2.5em; max-width: 60%; }
`
    );
  }
}
