import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { backoff } from "./backoff";
import { ageOf, Client, type Update } from "./client";

/** A server that a test plays: sockets, and requests that wait for an answer. */
class Sockets {
  static all: Sockets[] = [];
  readyState = 0;
  sent: Record<string, string>[] = [];
  onopen?: () => void;
  onmessage?: (e: { data: string }) => void;
  onclose?: (e: { code: number; reason: string }) => void;
  constructor(
    readonly url: string,
    readonly protocols: string[],
  ) {
    Sockets.all.push(this);
  }
  static get last() {
    return Sockets.all.at(-1)!;
  }
  send(text: string) {
    this.sent.push(JSON.parse(text) as Record<string, string>);
  }
  close() {
    this.readyState = 3;
  }
  open() {
    this.readyState = 1;
    this.onopen!();
  }
  say(message: object) {
    this.onmessage!({ data: JSON.stringify(message) });
  }
  lose(code = 1006, reason = "") {
    this.readyState = 3;
    this.onclose!({ code, reason });
  }
}

type Respond = (url: string, init: RequestInit) => Response | Promise<Response>;

function client(respond: Respond = () => Promise.reject(new Error("no route")), key?: string) {
  return new Client({
    server: "http://server/",
    fetch: ((url: string, init: RequestInit) => Promise.resolve().then(() => respond(url, init))) as typeof fetch,
    WebSocket: Sockets as unknown as typeof WebSocket,
    ...(key ? { key } : {}),
  });
}

/** seen collects the updates of a watch. */
function seen(c: Client, url = "/v1/top") {
  const updates: Update<{ n: number }>[] = [];
  const end = c.watch<{ n: number }>(url, (u) => updates.push(u));
  return { updates, end, last: () => updates.at(-1)! };
}

const json = (body: unknown, status = 200, headers = {}) =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json", ...headers } });

/** stream is a body of server-sent events that the test writes. */
function stream() {
  let control!: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({ start: (c) => void (control = c) });
  return {
    response: () => new Response(body, { headers: { "Content-Type": "text/event-stream" } }),
    write: (text: string) => control.enqueue(new TextEncoder().encode(text)),
    end: () => control.close(),
  };
}

const flush = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
  Sockets.all = [];
});
afterEach(() => vi.useRealTimers());

describe("a websocket", () => {
  it("watches, is told answers, and their age is 0 while it is live", () => {
    const w = seen(client());
    expect(w.last().line.state).toBe("connecting");
    expect(Sockets.last.url).toBe("ws://server/v1/live");
    expect(Sockets.last.protocols).toEqual(["tidemark.v1"]);
    Sockets.last.open();
    expect(Sockets.last.sent).toEqual([{ watch: "w1", url: "/v1/top" }]);
    Sockets.last.say({ watch: "w1", id: "i1", answer: { n: 1 } });
    vi.advanceTimersByTime(10_000);
    expect(w.last().answer).toEqual({ n: 1 });
    expect(w.last().line).toMatchObject({ state: "live", by: "websocket" });
    expect(ageOf(w.last())).toBe(0);
  });

  it("says when it is lost, ages, and goes on after the answer it has", () => {
    const w = seen(client());
    Sockets.last.open();
    Sockets.last.say({ watch: "w1", id: "i1", answer: { n: 1 } });
    vi.advanceTimersByTime(5_000);
    Sockets.last.lose();
    expect(w.last().line.state).toBe("down");
    expect(w.last().answer).toEqual({ n: 1 });
    expect(ageOf(w.last())).toBe(5_000);
    vi.advanceTimersByTime(w.last().line.retryAt! - Date.now());
    expect(Sockets.all).toHaveLength(2);
    expect(w.last().line.state).toBe("down"); // until it is open
    Sockets.last.open();
    expect(Sockets.last.sent).toEqual([{ watch: "w1", url: "/v1/top", after: "i1" }]);
    // Nothing has changed: the first word says so.
    Sockets.last.say({ ping: "2026-01-01T00:00:00Z" });
    expect(ageOf(w.last())).toBe(0);
  });

  it("comes back when the server asks it to", () => {
    seen(client());
    Sockets.last.open();
    Sockets.last.lose(1001, "retry: 7000");
    vi.advanceTimersByTime(6_999);
    expect(Sockets.all).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(Sockets.all).toHaveLength(2);
  });

  it("does not come back after 4500 to 4999, and says why", () => {
    const w = seen(client(undefined, "k"));
    expect(Sockets.last.protocols).toEqual(["tidemark.v1", "tidemark.key.k"]);
    Sockets.last.open();
    Sockets.last.lose(4501, "the key was taken back");
    vi.advanceTimersByTime(1e6);
    expect(Sockets.all).toHaveLength(1);
    expect(w.last().line).toMatchObject({ state: "failed", problem: { status: 401, detail: "the key was taken back" } });
  });

  it("is given up after 40 s of silence", () => {
    const w = seen(client());
    Sockets.last.open();
    vi.advanceTimersByTime(39_999);
    Sockets.last.say({ ping: "x" });
    vi.advanceTimersByTime(39_999);
    expect(w.last().line.state).toBe("live");
    vi.advanceTimersByTime(1);
    expect(w.last().line.state).toBe("down");
  });

  it("keeps the answer beside a problem that passes, and asks again", () => {
    const w = seen(client());
    Sockets.last.open();
    Sockets.last.say({ watch: "w1", id: "i1", answer: { n: 1 } });
    Sockets.last.say({ watch: "w1", error: { status: 503, title: "", detail: "busy" } });
    expect(w.last()).toMatchObject({ answer: { n: 1 }, problem: { detail: "busy" } });
    vi.advanceTimersByTime(10_000);
    expect(ageOf(w.last())).toBe(10_000);
    expect(Sockets.last.sent.slice(1)).toEqual([{ unwatch: "w1" }, { watch: "w2", url: "/v1/top" }]);
    Sockets.last.say({ watch: "w2", id: "i1", answer: { n: 1 } });
    expect(w.last().problem).toBeUndefined();
    expect(ageOf(w.last())).toBe(0);
  });

  it("is one for all watches, shared by those of the same question, closed with the last", () => {
    const c = client();
    const a = seen(c);
    Sockets.last.open();
    const b = seen(c);
    const other = seen(c, "/v1/status");
    Sockets.last.say({ watch: "w1", id: "i", answer: { n: 2 } });
    expect([a.last().answer, b.last().answer, other.last().answer]).toEqual([{ n: 2 }, { n: 2 }, undefined]);
    a.end();
    a.end();
    expect(Sockets.last.sent).toHaveLength(2);
    b.end();
    expect(Sockets.last.sent.at(-1)).toEqual({ unwatch: "w1" });
    other.end();
    expect(Sockets.last.readyState).toBe(3);
    expect(Sockets.all).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("where there is no websocket", () => {
  it("server-sent events are watched, and come back", async () => {
    let s = stream();
    const asked: string[] = [];
    const w = seen(
      client((url, init) => {
        asked.push(url + " " + new Headers(init.headers).get("Accept"));
        return s.response();
      }, "k"),
      "/v1/top?by=views",
    );
    Sockets.last.lose();
    await flush();
    expect(asked).toEqual(["http://server/v1/top?by=views&key=k text/event-stream"]);
    s.write('retry: 1500\n\nevent: answer\nid: i1\ndata: {"n":1}\n');
    await flush();
    expect(w.last().answer).toBeUndefined();
    s.write("\n: a comment\n\nevent: ping\ndata: {}\n\n");
    await flush();
    expect(w.last()).toMatchObject({ answer: { n: 1 }, line: { state: "live", by: "sse" } });
    vi.advanceTimersByTime(3_000);
    s.end();
    await flush();
    expect(w.last().line.state).toBe("down");
    expect(ageOf(w.last())).toBe(3_000);
    s = stream();
    await vi.advanceTimersByTimeAsync(1_500);
    expect(asked).toHaveLength(2);
    expect(Sockets.all).toHaveLength(1); // what has worked is taken
    s.write('event: answer\nid: i2\ndata: {"n":2}\n\n');
    await flush();
    expect(w.last()).toMatchObject({ answer: { n: 2 }, line: { state: "live" } });
    w.end();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("and no streams, the question is asked every five seconds", async () => {
    let n = 0;
    const w = seen(client((_, init) => (new Headers(init.headers).get("Accept") ? json({ n: -1 }) : json({ n: ++n }))));
    Sockets.last.lose();
    await flush();
    expect(w.last()).toMatchObject({ answer: { n: 1 }, line: { state: "live", by: "polling" } });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(ageOf(w.last())).toBe(3_000);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(w.last().answer).toEqual({ n: 2 });
    // Something better is tried again after a minute.
    await vi.advanceTimersByTimeAsync(60_000);
    expect(Sockets.all).toHaveLength(2);
    w.end();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("a wrong question is asked once, an overloaded server later", async () => {
    const asked: string[] = [];
    const c = client((url, init) => {
      if (new Headers(init.headers).get("Accept")) return json({});
      asked.push(url);
      return url.endsWith("wrong") ? json({ status: 400, detail: "unknown" }, 400) : json({ status: 429, detail: "slowly" }, 429, { "Retry-After": "30" });
    });
    const wrong = seen(c, "/v1/wrong");
    const slow = seen(c, "/v1/slow");
    Sockets.last.lose();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(wrong.last().problem).toMatchObject({ status: 400, detail: "unknown" });
    expect(slow.last().problem).toMatchObject({ status: 429 });
    expect(asked.sort()).toEqual(["http://server/v1/slow", "http://server/v1/wrong"]);
  });
});

describe("a server that is away", () => {
  it("is tried by every way, then again and again, less and less often", async () => {
    const w = seen(client());
    for (let i = 0; i < 40; i++) {
      if (Sockets.last.readyState === 0) Sockets.last.lose();
      await vi.advanceTimersByTimeAsync(10_000);
    }
    expect(w.last().line.state).toBe("down");
    expect(Sockets.all.length).toBeGreaterThan(10);
    expect(Sockets.all.length).toBeLessThan(41);
    // It is there again.
    while (Sockets.last.readyState !== 0) await vi.advanceTimersByTimeAsync(1_000);
    Sockets.last.open();
    expect(w.last().line).toMatchObject({ state: "live", by: "websocket" });
  });

  it("is not asked by all clients at once", () => {
    const waits = Array.from({ length: 1000 }, (_, i) => backoff(0, () => i / 1000));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(500);
    expect(Math.max(...waits)).toBeLessThan(3_000);
    expect(backoff(99, () => 1)).toBe(20_000);
  });
});
