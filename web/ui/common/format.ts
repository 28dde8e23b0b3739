import type { Count, Ranked } from "../client";

/** short writes a number in the space of a column: 1,234 below ten thousand, 12.4 K above. */
export function short(n: number): string {
  if (n < 10_000) return full(n);
  for (const [unit, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6]] as const) if (n >= size * 0.9995) return digits(n / size) + " " + unit;
  return digits(n / 1e3) + " K";
}

function digits(n: number): string {
  return n.toFixed(n < 9.995 ? 2 : n < 99.95 ? 1 : 0);
}

/** full writes all digits of a number. */
export function full(n: number): string {
  return n.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

/** explain says what a number is in full, with its bounds. */
export function explain(n: Count | undefined): string {
  if (!n) return "unknown";
  if (n.low === n.high) return full(n.value);
  const below = n.value - n.low;
  const above = n.high - n.value;
  if (below === above) return `${full(n.value)}, give or take ${full(above)}; 95 % sure`;
  return `${full(n.value)}, from ${full(n.low)} to ${full(n.high)}; 95 % sure`;
}

/** estimated tells whether a number is more than one can be sure of. */
export function estimated(n: Count | undefined): boolean {
  return n !== undefined && n.low !== n.high;
}

/** total is the number of all types together. */
export function total(counts: Record<string, Count> | undefined): Count | undefined {
  if (!counts) return undefined;
  return counts["*"] ?? Object.values(counts)[0];
}

/** duration writes milliseconds as people say them. */
export function duration(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.round(s / 60)} min`;
  if (s < 48 * 3600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} days`;
}

/** range writes what last= says in words: "5 min". */
export function range(last: string): string {
  const m = /^(\d+)([mhdw])$/.exec(last);
  if (!m) return last === "all" ? "all time" : last;
  const unit = { m: "min", h: "h", d: m[1] === "1" ? "day" : "days", w: m[1] === "1" ? "week" : "weeks" }[m[2] as "m" | "h" | "d" | "w"];
  return `${m[1]} ${unit}`;
}

/** nameOf returns what an item is called. One of blanks alone is quoted: it has to be seen. */
export function nameOf(item: string, title?: string): string {
  if (title?.trim()) return title;
  return item.trim() ? item : JSON.stringify(item);
}

/** why says in words why an item rises: "312 in 5 min, 21 expected". */
export function why(item: Ranked, last: string): string | undefined {
  if (item.expected === undefined) return undefined;
  const e = item.expected.value;
  const expected = e < 10 ? e.toFixed(1).replace(/\.0$/, "") : full(Math.round(e));
  return `${full(item.views.value)} in ${range(last)}, ${expected} expected`;
}

/** ranks returns the place of each number in an order: equal ones share theirs. */
export function ranks(numbers: readonly number[]): number[] {
  let rank = 1;
  return numbers.map((n, i) => (i > 0 && n === numbers[i - 1] ? rank : (rank = i + 1)));
}
