import type { Problem } from "./answers";
import { backoff } from "./backoff";
import { passing, type Connection, type Events, type Server } from "./connection";
import { poll } from "./poll";
import { socket } from "./socket";
import { sse } from "./sse";

/** A way to be told answers. */
export type Way = "websocket" | "sse" | "polling";

/** How the line to the server is. */
export interface Line {
  /** connecting: for the first time. down: it was there, or could not be had; it is tried again. failed: trying again would not help. */
  state: "connecting" | "live" | "down" | "failed";
  /** By which way, while it is live. */
  by?: Way;
  /** Since when it is so, in milliseconds since 1970. */
  since: number;
  /** When it is tried again, while it is down. */
  retryAt?: number;
  /** Why it failed. */
  problem?: Problem;
}

/** What is known of a question. */
export interface Update<T> {
  /** The newest answer; absent before the first. */
  answer?: T;
  /** Why there is no newer answer: the server's refusal. */
  problem?: Problem;
  line: Line;
  /** When the answer was last known to be the newest, in milliseconds since 1970. */
  confirmed?: number;
}

export type Listener<T> = (update: Update<T>) => void;

export interface ClientOptions {
  /** The server: "https://host". In a browser, where the page came from. */
  server?: string;
  /** A read key. */
  key?: string;
  /** What is tried, in this order. Default: websocket, sse, polling. */
  ways?: Way[];
  /** How often a question is asked again where it is polled, in milliseconds. Default 5,000. */
  pollEvery?: number;
  /** Instead of those of the environment; Node before 22 has no WebSocket. */
  fetch?: typeof fetch;
  WebSocket?: typeof WebSocket;
}

interface Watch {
  listeners: Set<Listener<never>>;
  update: { answer?: unknown; problem?: Problem; confirmed?: number };
  id?: string;
  again?: ReturnType<typeof setTimeout>;
}

const ways: Record<Way, (server: Server, events: Events) => Connection> = { websocket: socket, sse, polling: poll };

/** How long polling goes on before something better is tried again. */
const pollingFor = 60_000;

/**
 * A Client watches questions of one server over one connection, and brings it back
 * when it is lost. It is connected while something is watched.
 */
export class Client {
  private readonly server: Server;
  private readonly order: Way[];
  private readonly watches = new Map<string, Watch>();
  private line: Line = { state: "connecting", since: Date.now() };
  private connection?: Connection;
  /** What has worked: then nothing else is tried. */
  private works?: Way;
  private attempt = 0;
  private timer?: ReturnType<typeof setTimeout>;

  constructor(options: ClientOptions = {}) {
    const base = options.server ?? globalThis.location?.origin;
    if (!base) throw new Error("server: the URL of the server is missing");
    const sockets = options.WebSocket ?? globalThis.WebSocket;
    this.server = {
      base: base.replace(/\/+$/, ""),
      pollEvery: options.pollEvery ?? 5_000,
      fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
      ...(options.key ? { key: options.key } : {}),
      ...(sockets ? { WebSocket: sockets } : {}),
    };
    this.order = (options.ways ?? ["websocket", "sse", "polling"]).filter((w) => w !== "websocket" || sockets);
    // A laptop that was opened, a phone that has left the tunnel.
    globalThis.addEventListener?.("online", () => this.hurry());
    globalThis.document?.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.hurry();
    });
  }

  /**
   * watch calls the listener at once with what is known, and again whenever the answer
   * or the line has changed, until the function it returns is called. url is a
   * question: "/v1/top?by=rising&last=5m".
   */
  watch<T>(url: string, listener: Listener<T>): () => void {
    let w = this.watches.get(url);
    if (!w) {
      w = { listeners: new Set(), update: {} };
      this.watches.set(url, w);
      if (this.connection) this.connection.watch(url);
      else if (!this.timer && this.line.state !== "failed") this.connect();
    }
    w.listeners.add(listener as Listener<never>);
    this.tell(w, listener as Listener<never>);
    return () => this.unwatch(url, listener as Listener<never>);
  }

  private unwatch(url: string, listener: Listener<never>): void {
    const w = this.watches.get(url);
    if (!w?.listeners.delete(listener) || w.listeners.size > 0) return;
    clearTimeout(w.again);
    this.watches.delete(url);
    this.connection?.unwatch(url);
    if (this.watches.size > 0) return;
    clearTimeout(this.timer);
    this.connection?.close();
    this.connection = this.timer = undefined;
    this.line = { state: "connecting", since: Date.now() };
  }

  private tell(w: Watch, listener?: Listener<never>): void {
    const update = { ...w.update, line: this.line } as Update<never>;
    for (const l of listener ? [listener] : [...w.listeners]) l(update);
  }

  private become(line: Omit<Line, "since">): void {
    const since = line.state === this.line.state ? this.line.since : Date.now();
    this.line = { ...line, since };
    for (const w of [...this.watches.values()]) this.tell(w);
  }

  /** connect tries what has worked, or one way after the other, the n-th first. */
  private connect(n = 0): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const by = this.works ?? this.order[n]!;
    let opened = false;
    let connection: Connection;
    const events: Events = {
      opened: () => {
        if (opened) return;
        opened = true;
        this.attempt = 0;
        if (by !== "polling") this.works = by;
        else this.timer = setTimeout(() => this.reconnect(), pollingFor);
        if (by === "websocket") for (const [url, w] of this.watches) connection.watch(url, w.id);
        this.become({ state: "live", by });
      },
      alive: () => {
        const now = Date.now();
        for (const w of this.watches.values()) if (w.update.answer !== undefined && !w.update.problem) w.update.confirmed = now;
      },
      answer: (url, id, answer) => this.answered(url, { answer, confirmed: Date.now() }, id),
      problem: (url, problem) => this.refused(url, problem),
      closed: (how) => {
        this.connection = undefined;
        clearTimeout(this.timer);
        if (how.final) return this.become({ state: "failed", problem: how.final });
        if (!opened && !this.works && n + 1 < this.order.length) return this.connect(n + 1);
        const wait = how.retry ?? backoff(this.attempt++);
        this.timer = setTimeout(() => this.connect(), wait);
        this.become({ state: "down", retryAt: Date.now() + wait });
      },
    };
    try {
      connection = ways[by](this.server, events);
    } catch {
      return events.closed({}); // a socket that the page may not open
    }
    this.connection = connection;
    if (by !== "websocket") for (const url of this.watches.keys()) connection.watch(url);
  }

  private answered(url: string, update: Watch["update"], id?: string): void {
    const w = this.watches.get(url);
    if (!w) return;
    w.update = update;
    w.id = id;
    this.tell(w);
  }

  /** refused keeps the answer that there is, and asks again where that may help. */
  private refused(url: string, problem: Problem): void {
    const w = this.watches.get(url);
    if (!w) return;
    w.update = { ...w.update, problem };
    w.id = undefined; // so that the answer comes again, should it be the same
    this.tell(w);
    if (!passing(problem) || this.line.by === "polling") return; // which asks again anyway
    clearTimeout(w.again);
    w.again = setTimeout(() => {
      if (this.watches.get(url) !== w || !w.update.problem || !this.connection) return;
      this.connection.unwatch(url);
      this.connection.watch(url);
    }, backoff(1));
  }

  private reconnect(): void {
    this.connection?.close();
    this.connection = undefined;
    this.connect();
  }

  /** hurry tries at once, or within a second, so that not all do at the same moment. */
  private hurry(): void {
    if (this.line.state !== "down" || !this.timer) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), 1_000 * Math.random());
  }
}

/**
 * ageOf returns how old what is shown may be, in milliseconds: 0 while the server
 * would say at once if it had changed, undefined where there is nothing to show.
 */
export function ageOf(update: Update<unknown>, now = Date.now()): number | undefined {
  if (update.confirmed === undefined) return undefined;
  if (update.line.state === "live" && update.line.by !== "polling" && !update.problem) return 0;
  return Math.max(0, now - update.confirmed);
}

const clients = new Map<string, Client>();

/**
 * watch watches a question at the server that its URL names, or that the page came
 * from; all watches of a server share one connection. It returns what ends it.
 */
export function watch<T>(url: string, listener: Listener<T>, options: ClientOptions = {}): () => void {
  const at = new URL(url, options.server ?? globalThis.location?.origin);
  const which = JSON.stringify([at.origin, options.key]);
  let client = clients.get(which);
  if (!client) clients.set(which, (client = new Client({ ...options, server: at.origin })));
  return client.watch(at.pathname + at.search, listener);
}
