import { describe, expect, it } from "vitest";
import { Damping } from "./damping";

const ranking = (of: Record<string, number>) =>
  Object.entries(of)
    .map(([key, value]) => ({ key, value }))
    .sort((a, b) => b.value - a.value);

describe("Damping", () => {
  it("shows the first answer as it is, and newcomers where they belong", () => {
    const d = new Damping();
    expect(d.order(ranking({ a: 30, b: 20, c: 10 }))).toEqual(["a", "b", "c"]);
    expect(d.order(ranking({ a: 30, n: 25, b: 20, c: 10 }))).toEqual(["a", "n", "b", "c"]);
  });

  it("lets a challenger pass after three answers in which it led by the margin", () => {
    const d = new Damping();
    d.order(ranking({ a: 100, b: 90 }));
    expect(d.order(ranking({ a: 100, b: 103 }))).toEqual(["a", "b"]);
    expect(d.order(ranking({ a: 100, b: 103 }))).toEqual(["a", "b"]);
    expect(d.order(ranking({ a: 100, b: 103 }))).toEqual(["b", "a"]);
  });

  it("counts from the beginning once the lead was lost", () => {
    const d = new Damping();
    d.order(ranking({ a: 100, b: 90 }));
    for (let i = 0; i < 20; i++) {
      expect(d.order(ranking({ a: 100, b: 103 }))).toEqual(["a", "b"]);
      expect(d.order(ranking({ a: 100, b: 103 }))).toEqual(["a", "b"]);
      expect(d.order(ranking({ a: 103, b: 103 }))).toEqual(["a", "b"]);
    }
  });

  it("lets a small lead pass too, after ten times as many", () => {
    const d = new Damping();
    d.order(ranking({ a: 1000, b: 900 }));
    const seen = Array.from({ length: 30 }, () => d.order(ranking({ a: 1000, b: 1001 }))[0]);
    expect(seen.slice(0, 29)).toEqual(Array(29).fill("a"));
    expect(seen[29]).toBe("b");
  });

  it("lets one pass all that it leads over at once, and forgets who has left", () => {
    const d = new Damping({ ticks: 2 });
    d.order(ranking({ a: 50, b: 40, c: 30, d: 20 }));
    d.order(ranking({ a: 50, b: 40, c: 30, d: 90 }));
    expect(d.order(ranking({ a: 50, b: 40, c: 30, d: 90 }))).toEqual(["d", "a", "b", "c"]);
    expect(d.order(ranking({ a: 50, c: 30 }))).toEqual(["a", "c"]);
  });

  // Whatever came before: what is shown is what the answer has, and ends in its order.
  it("ends in the true order where the numbers stay", () => {
    const d = new Damping();
    let seed = 1;
    const next = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    let last: Record<string, number> = {};
    for (let i = 0; i < 200; i++) {
      last = Object.fromEntries(Array.from({ length: 12 }, (_, k) => ["item" + Math.floor(next() * 20), k * 100 + Math.floor(next() * 300)]));
      expect(d.order(ranking(last)).sort()).toEqual(Object.keys(last).sort());
    }
    let shown: string[] = [];
    for (let i = 0; i < 31; i++) shown = d.order(ranking(last));
    const values = shown.map((k) => last[k]!);
    expect(values).toEqual([...values].sort((a, b) => b - a));
  });
});
