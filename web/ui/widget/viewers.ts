import type { Answer } from "../client";
import { explain, short } from "../common/format";
import { common, html, Watching } from "./base";

/**
 * <tidemark-viewers item="…" last="5m">: "812 watching now". Other attributes: type,
 * label (instead of "watching now"), server, key. Without an item: the whole site.
 */
export class Viewers extends Watching<Answer> {
  static readonly observedAttributes = ["item", "last", "type", "label", "server", "key"];

  protected override url(): string {
    const question = new URLSearchParams({ last: this.attribute("last", "5m"), ...this.given("item", "type") });
    return new URL("/v1/viewers?" + question.toString(), this.attribute("server", import.meta.url)).href;
  }

  protected override view(age: number | undefined) {
    const n = this.update.answer?.viewers;
    return html`<span part="number" class="n" title=${explain(n)}>${n ? short(n.value) : "–"}</span>
      <span part="label">${this.attribute("label", "watching now")}</span>
      <span part="status" class="note" role="status">${this.note(age)}</span>`;
  }

  protected override style$(): string {
    return common + ":host { display: inline-block; } .n { font-weight: 600; }";
  }
}
