/** How reluctant a ranking is. */
export interface DampingOptions {
  /** By how much a challenger must lead, as a share of the number of who is passed. Default 0.02. */
  margin?: number;
  /** In how many answers running. With a smaller lead it takes ten times as many. Default 3. */
  ticks?: number;
}

/**
 * Damping keeps the rows of a ranking from flickering: two neighbours change places
 * only when the lower one has led for some answers by a margin.
 *
 * What is shown is always what the newest answer has, in an order that ends in the
 * true one where the numbers stay. Not the server's work: it depends on what this
 * reader saw.
 */
export class Damping {
  private shown: string[] = [];
  /** For "b over a": how long b has led. */
  private leads = new Map<string, number>();
  private readonly margin: number;
  private readonly ticks: number;

  constructor(options: DampingOptions = {}) {
    this.margin = options.margin ?? 0.02;
    this.ticks = options.ticks ?? 3;
  }

  /** order takes the ranking of a new answer, best first, and returns the keys in the order to be shown. */
  order(ranking: readonly { key: string; value: number }[]): string[] {
    const value = new Map(ranking.map((r) => [r.key, r.value]));
    const order = this.shown.filter((key) => value.has(key));
    const known = new Set(order);
    ranking.forEach(({ key, value: v }) => {
      if (known.has(key)) return;
      // Nobody has seen a newcomer elsewhere: it enters where it belongs.
      const at = order.findIndex((other) => value.get(other)! < v);
      order.splice(at < 0 ? order.length : at, 0, key);
    });
    const may = this.lead(order, value);
    for (let moved = true; moved; ) {
      moved = false;
      for (let i = 1; i < order.length; i++) {
        const above = order[i - 1]!;
        const below = order[i]!;
        if (!may(below, above)) continue;
        [order[i - 1], order[i]] = [below, above];
        moved = true;
      }
    }
    this.shown = order;
    return [...order];
  }

  /** lead notes who leads over whom, and tells who may pass. */
  private lead(order: string[], value: Map<string, number>): (below: string, above: string) => boolean {
    const leads = new Map<string, number>();
    const pair = (below: string, above: string) => JSON.stringify([below, above]);
    order.forEach((above, i) => {
      const a = value.get(above)!;
      for (const below of order.slice(i + 1)) {
        const b = value.get(below)!;
        if (b <= a) continue;
        const step = b >= a * (1 + this.margin) ? 1 : 0.1;
        leads.set(pair(below, above), (this.leads.get(pair(below, above)) ?? 0) + step);
      }
    });
    this.leads = leads;
    // Tenths do not add up to a whole in binary.
    return (below, above) => (leads.get(pair(below, above)) ?? 0) > this.ticks - 0.05;
  }
}
