/** What a page shows is what its URL says. */
export interface State {
  page: "home" | "item" | "status";
  item: string;
  by: "views" | "viewers" | "rising";
  /** A range up to now (or to at): 5m, 24h, all. Empty where from and to are given. */
  last: string;
  from: string;
  to: string;
  /** Another instant in the place of now, in Unix milliseconds; empty: now. */
  at: string;
  type: string;
  dimension: string;
  value: string;
  /** The zone of times shown; empty: the reader's. */
  tz: string;
}

export const rangesOf = {
  home: ["5m", "15m", "1h", "6h", "24h", "7d", "30d", "all"],
  rising: ["1m", "5m", "15m", "1h", "6h"],
};

const texts = ["last", "from", "to", "at", "type", "dimension", "value", "tz"] as const;

/** read returns what a URL says. What it does not say, or says wrongly, has its default. */
export function read(url: URL): State {
  const q = url.searchParams;
  const page = url.pathname === "/item" ? "item" : url.pathname === "/status" ? "status" : "home";
  const by = q.get("by");
  const state: State = { page, item: q.get("item") ?? "", by: by === "viewers" || by === "rising" ? by : "views", last: "", from: "", to: "", at: "", type: "", dimension: "", value: "", tz: "" };
  for (const name of texts) state[name] = q.get(name) ?? "";
  if (!state.last && !(state.from && state.to)) state.last = page === "item" ? "24h" : "1h";
  if (state.page === "home" && state.by === "rising" && !rangesOf.rising.includes(state.last)) state.last = "1h";
  return state;
}

/** href returns the URL of a state with some changes. Defaults are left out of it. */
export function href(state: State, change: Partial<State> = {}): string {
  const s = { ...state, ...change };
  const q = new URLSearchParams();
  if (s.page === "item") q.set("item", s.item);
  if (s.page !== "status") {
    if (s.page === "home" && s.by !== "views") q.set("by", s.by);
    for (const name of texts) if (s[name]) q.set(name, s[name]);
    if (s.from && s.to) q.delete("last");
    if (q.get("last") === (s.page === "item" ? "24h" : "1h")) q.delete("last");
  }
  const text = q.toString();
  return (s.page === "home" ? "/" : "/" + s.page) + (text ? "?" + text : "");
}

/** ranged returns the parameters that say which range a question is about. */
export function ranged(s: State): Record<string, string> {
  const p: Record<string, string> = s.from && s.to ? { from: s.from, to: s.to } : { last: s.last };
  if (s.at) p["at"] = s.at;
  return p;
}

/** ask returns a question's URL; what is empty is left out. */
export function ask(path: string, parameters: Record<string, string | string[] | undefined>): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) for (const v of [value ?? []].flat()) if (v !== "") q.append(name, v);
  const text = q.toString();
  return "/v1/" + path + (text ? "?" + text : "");
}

/** minutesOf returns how long the range of a state is; undefined for all time. */
export function minutesOf(s: State): number | undefined {
  if (s.from && s.to) return (instant(s.to) - instant(s.from)) / 60_000;
  const m = /^(\d+)([mhdw])$/.exec(s.last);
  return m ? Number(m[1]) * { m: 1, h: 60, d: 1440, w: 10080 }[m[2] as "m" | "h" | "d" | "w"] : undefined;
}

/** stepOf returns the steps in which a range is drawn. */
export function stepOf(s: State): "minute" | "hour" | "day" {
  const minutes = minutesOf(s);
  if (minutes === undefined || minutes > 14 * 1440) return "day";
  return minutes > 6 * 60 ? "hour" : "minute";
}

/** instant reads a time of a URL: Unix milliseconds or RFC 3339. */
export function instant(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Date.parse(text);
}
