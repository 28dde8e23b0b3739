import { html, nothing, render } from "lit-html";
import uPlot from "uplot";
import type { Count } from "../client";
import { explain, short } from "../common/format";
import type { Times } from "./times";

/** One bucket of a curve. */
export interface Point {
  start: string;
  end: string;
  complete: boolean;
  n: Count | undefined;
}

/**
 * Chart is a curve with its bounds as a band. The bucket that still fills is dashed.
 * The arrow keys move its cursor, a drag chooses a range, a button shows it as a table.
 */
export class Chart extends HTMLElement {
  label = "";
  times!: Times;
  /** chose is told the range that was dragged, in Unix milliseconds. */
  chose: (from: number, to: number) => void = () => {};
  private points_: readonly Point[] = [];
  private plot?: uPlot;
  private cursor?: number;
  private tabled = false;
  private readonly sizes = new ResizeObserver(() => this.resize());
  private readonly scheme = matchMedia("(prefers-color-scheme: dark)");
  private readonly recolour = () => this.plot?.redraw();

  set points(points: readonly Point[]) {
    const before = this.points_;
    this.points_ = points;
    if (!this.isConnected || (before.length === points.length && JSON.stringify(before) === JSON.stringify(points))) return;
    if (this.plot) this.plot.setData(this.data());
    else this.start();
    this.draw();
  }

  connectedCallback(): void {
    this.draw();
    this.start();
    this.sizes.observe(this);
    this.scheme.addEventListener("change", this.recolour);
  }

  disconnectedCallback(): void {
    this.sizes.disconnect();
    this.scheme.removeEventListener("change", this.recolour);
    this.plot?.destroy();
    this.plot = undefined;
  }

  private resize(): void {
    if (this.plot && this.clientWidth > 0 && this.clientWidth !== this.plot.width) this.plot.setSize({ width: this.clientWidth, height: this.plot.height });
  }

  /** data has columns: start, low, high, the settled curve, the one so far. */
  private data(): uPlot.AlignedData {
    const p = this.points_;
    const settled = p.findLastIndex((b) => b.complete);
    return [
      p.map((b) => Date.parse(b.start) / 1000),
      p.map((b) => b.n?.low ?? null),
      p.map((b) => b.n?.high ?? null),
      p.map((b, i) => (i <= settled ? (b.n?.value ?? null) : null)),
      p.map((b, i) => (i >= settled ? (b.n?.value ?? null) : null)),
    ];
  }

  private start(): void {
    if (this.points_.length === 0) return;
    const css = (name: string) => getComputedStyle(this).getPropertyValue(name).trim();
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: () => css("--muted"), font, ticks: { show: false } };
    const curve = { stroke: () => css("--accent"), width: 1.75, points: { show: this.points_.length < 2, size: 6 } };
    this.plot = new uPlot(
      {
        width: Math.max(200, this.clientWidth),
        height: 200,
        padding: [8, 8, 0, 0],
        tzDate: (t) => uPlot.tzDate(new Date(t * 1000), this.times.zone),
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
        select: { show: true, left: 0, top: 0, width: 0, height: 0 },
        scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.08)] } },
        axes: [
          { ...axis, grid: { show: false }, space: 64, values: (_, all, __, ___, apart) => all.map((t) => this.times.tick(t * 1000, apart)) },
          { ...axis, size: 52, grid: { stroke: () => css("--hair"), width: 1 }, values: (_, all) => all.map((v) => (Number.isInteger(v) ? short(v) : "")) },
        ],
        series: [{}, { show: true, stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } }, curve, { ...curve, dash: [4, 4] }],
        bands: [{ series: [2, 1], fill: () => css("--band") }],
        hooks: {
          setCursor: [(u) => this.moved(u.cursor.idx ?? undefined)],
          setSelect: [(u) => this.selected(u)],
        },
      },
      this.data(),
      this.querySelector<HTMLElement>(".plot")!,
    );
    // uPlot knows mice only.
    this.plot.over.addEventListener("pointermove", (e) => {
      if (e.pointerType !== "mouse") this.plot?.setCursor({ left: e.offsetX, top: e.offsetY });
    });
  }

  private moved(i: number | undefined): void {
    if (i === this.cursor) return;
    this.cursor = i;
    this.draw();
  }

  private selected(u: uPlot): void {
    if (u.select.width < 4) return;
    const from = u.posToIdx(u.select.left);
    const to = u.posToIdx(u.select.left + u.select.width);
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    const [first, last] = [this.points_[from], this.points_[to]];
    if (first && last && to > from) this.chose(Date.parse(first.start), Date.parse(last.end));
  }

  private key(e: KeyboardEvent): void {
    if (!this.plot) return;
    const last = this.points_.length - 1;
    const now = this.cursor ?? (e.key === "ArrowLeft" ? last + 1 : -1);
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    const i = Math.min(last, Math.max(0, to));
    this.plot.setCursor({ left: this.plot.valToPos(this.plot.data[0][i]!, "x"), top: 10 });
  }

  private draw(): void {
    const b = this.cursor === undefined ? undefined : this.points_[this.cursor];
    const span = (p: Point) => this.times.span(p.start, p.end);
    render(
      html`<div class="chart-head">
          <h3>${this.label}</h3>
          <output class="note" aria-live="polite">${b ? html`<b>${explain(b.n)}</b> ${span(b)}${b.complete ? "" : ", so far"}` : nothing}</output>
          <button type="button" class="quiet" aria-pressed=${this.tabled} @click=${() => ((this.tabled = !this.tabled), this.draw())}>Table</button>
        </div>
        <div class="plot" role="group" tabindex="0" aria-label="${this.label}, a curve: the arrow keys read its values" @keydown=${(e: KeyboardEvent) => this.key(e)}></div>
        ${this.tabled
          ? html`<div class="scroll" tabindex="0" role="region" aria-label="${this.label} as a table"><table>
              <thead><tr><th scope="col">Time</th><th scope="col" class="num">${this.label}</th><th scope="col" class="num">at least</th><th scope="col" class="num">at most</th></tr></thead>
              <tbody>${this.points_.map((p) => html`<tr><th scope="row">${span(p)}${p.complete ? "" : " (so far)"}</th><td class="num">${p.n?.value ?? "–"}</td><td class="num">${p.n?.low ?? "–"}</td><td class="num">${p.n?.high ?? "–"}</td></tr>`)}</tbody>
            </table></div>`
          : nothing}`,
      this,
    );
  }
}

customElements.define("tm-chart", Chart);
