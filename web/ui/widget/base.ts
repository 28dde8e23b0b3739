import { html, nothing, render, type TemplateResult } from "lit-html";
import { ageOf, watch, type Update } from "../client";
import { duration } from "../common/format";

/** Where this script came from is where its questions go. */
const home = new URL(import.meta.url).origin;

/**
 * Watching is an element that shows the answer to one question, and asks another one
 * when its attributes change.
 */
export abstract class Watching<T> extends HTMLElement {
  protected readonly root = this.attachShadow({ mode: "open" });
  protected update: Update<T> = { line: { state: "connecting", since: Date.now() } };
  private end?: () => void;
  private clock?: ReturnType<typeof setInterval>;
  private waiting = false;

  /** url is the question that the attributes ask. */
  protected abstract url(): string;
  protected abstract view(age: number | undefined): TemplateResult;
  protected abstract style$(): string;
  /** changed is told of a new answer before it is shown. */
  protected changed(_update: Update<T>): void {}

  connectedCallback(): void {
    // Not a style element: the page's policy might forbid it.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(this.style$());
    this.root.adoptedStyleSheets = [sheet];
    this.ask();
  }

  disconnectedCallback(): void {
    this.end?.();
    this.end = undefined;
    clearInterval(this.clock);
    this.clock = undefined;
  }

  attributeChangedCallback(): void {
    if (this.isConnected && !this.waiting) {
      this.waiting = true;
      queueMicrotask(() => {
        this.waiting = false;
        if (this.isConnected) this.ask();
      });
    }
  }

  /** attribute returns an attribute, or what holds without it. */
  protected attribute(name: string, otherwise: string): string {
    return this.getAttribute(name)?.trim() || otherwise;
  }

  /** given returns those of the attributes that are there, as parameters. */
  protected given(...names: string[]): Record<string, string> {
    return Object.fromEntries(names.flatMap((n) => (this.getAttribute(n) ? [[n, this.getAttribute(n)!]] : [])));
  }

  private ask(): void {
    this.end?.();
    const key = this.getAttribute("key");
    this.update = { line: { state: "connecting", since: Date.now() } };
    this.end = watch<T>(
      this.url(),
      (update) => {
        this.update = update;
        this.changed(update);
        this.draw();
        // Only what grows old needs a clock.
        if (ageOf(update) !== 0) this.clock ??= setInterval(() => this.draw(), 1000);
        else {
          clearInterval(this.clock);
          this.clock = undefined;
        }
      },
      { server: this.attribute("server", home), ...(key ? { key } : {}) },
    );
  }

  protected draw(): void {
    const age = ageOf(this.update);
    // A poll now and then is as good as live.
    const stale = this.update.line.state !== "live" || (age ?? 0) > 30_000;
    this.toggleAttribute("stale", stale && age !== undefined);
    render(this.view(stale ? age : undefined), this.root);
  }

  /** note says what is wrong, if anything is; the place for it is always there. */
  protected note(age: number | undefined): string | typeof nothing {
    const { answer, problem, line } = this.update;
    const wrong = line.problem ?? problem;
    if (answer === undefined && wrong) return wrong.detail;
    if (age !== undefined) return `last update ${duration(age)} ago` + (line.state === "failed" ? "" : ", trying again");
    if (answer === undefined && line.state === "down") return "no connection, trying again";
    return nothing;
  }
}

export const common = `
:host { display: block; font: inherit; color: inherit; font-variant-numeric: tabular-nums;
  --muted: var(--tidemark-muted, color-mix(in srgb, currentColor 68%, transparent));
  --hair: var(--tidemark-line, color-mix(in srgb, currentColor 14%, transparent));
  --accent: var(--tidemark-accent, light-dark(#0a7266, #4fd1bd));
  --rise: var(--tidemark-rise, light-dark(#a84a00, #ffb066)); }
:host([hidden]) { display: none; }
.note { color: var(--muted); font-size: .8125em; }
.n { transition: opacity .2s; }
:host([stale]) .n { opacity: .6; }
@media (prefers-reduced-motion: reduce) { .n { transition: none; } }
`;

export { html, nothing };
