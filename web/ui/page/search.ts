import { html, nothing, render } from "lit-html";
import type { Described } from "../client";
import { nameOf } from "../common/format";

interface Found extends Described {
  item: string;
}

/** Search is the field that finds items by how their name begins. */
export class Search extends HTMLElement {
  /** find asks; go opens an item's page. */
  find: (prefix: string) => Promise<Found[]> = () => Promise.resolve([]);
  go: (item: string) => void = () => {};
  private text = "";
  private found: Found[] | undefined;
  private chosen = -1;
  private asked = 0;
  private timer?: ReturnType<typeof setTimeout>;

  connectedCallback(): void {
    this.draw();
    this.addEventListener("focusout", (e) => {
      if (!this.contains(e.relatedTarget as Node | null)) this.close();
    });
  }

  private close(): void {
    this.found = undefined;
    this.chosen = -1;
    this.draw();
  }

  private typed(text: string): void {
    this.text = text;
    clearTimeout(this.timer);
    const asked = ++this.asked;
    if (!text) return this.close();
    this.timer = setTimeout(() => {
      this.find(text).then(
        (found) => {
          if (asked !== this.asked) return; // something else was typed since
          this.found = found;
          this.chosen = -1;
          this.draw();
        },
        () => this.close(), // the line is down, which the page says
      );
    }, 120);
  }

  private open(item: string): void {
    this.text = "";
    this.asked++;
    this.close();
    this.querySelector("input")!.value = "";
    this.go(item);
  }

  private key(e: KeyboardEvent): void {
    const found = this.found ?? [];
    if (e.key === "Escape") return this.close();
    if (e.key === "Enter") {
      e.preventDefault();
      const item = found[this.chosen]?.item ?? found.find((f) => f.item === this.text)?.item ?? found[0]?.item ?? this.text;
      if (item) this.open(item);
      return;
    }
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || found.length === 0) return;
    e.preventDefault();
    this.chosen = (this.chosen + step + found.length) % found.length;
    this.draw();
  }

  private draw(): void {
    const open = this.found !== undefined;
    render(
      html`<input type="search" placeholder="Find an item" aria-label="Find an item by the start of its ID" autocomplete="off" spellcheck="false" maxlength="1024"
          role="combobox" aria-expanded=${open} aria-controls="found" aria-autocomplete="list" aria-activedescendant=${this.chosen >= 0 ? "found-" + this.chosen : nothing}
          @input=${(e: Event) => this.typed((e.target as HTMLInputElement).value)} @keydown=${(e: KeyboardEvent) => this.key(e)} />
        <div id="found" role="listbox" aria-label="Items" ?hidden=${!open} tabindex="-1">
          ${this.found?.length === 0 ? html`<div class="none" role="option" aria-selected="false" aria-disabled="true">No item begins like this</div>` : nothing}
          ${this.found?.map(
            (f, i) => html`<div id="found-${i}" role="option" aria-selected=${i === this.chosen} @mousedown=${(e: Event) => e.preventDefault()} @click=${() => this.open(f.item)}>
              <bdi>${nameOf(f.item, f.title)}</bdi>${f.title ? html`<bdi class="id">${f.item}</bdi>` : nothing}
            </div>`,
          )}
        </div>`,
      this,
    );
  }
}

customElements.define("tm-search", Search);
