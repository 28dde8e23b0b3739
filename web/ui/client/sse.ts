import { address, passing, problemOf, silence, type Connection, type Events, type Server } from "./connection";
import type { Problem } from "./answers";

/**
 * sse watches by server-sent events, one stream a question. Not by EventSource: Node
 * has none, it gives up at an error without saying which, and it cannot be told to
 * come back later.
 */
export function sse(server: Server, events: Events): Connection {
  const streams = new Map<string, AbortController>();
  let ended = false;

  const end = (how: { retry?: number; final?: Problem }, tell = true) => {
    if (ended) return;
    ended = true;
    for (const s of streams.values()) s.abort();
    if (tell) events.closed(how);
  };

  const listen = async (url: string, stream: AbortController) => {
    let retry: number | undefined;
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => end({}), silence);
    };
    stream.signal.addEventListener("abort", () => clearTimeout(watchdog));
    try {
      heard();
      const response = await server.fetch(address(server, url), {
        headers: { Accept: "text/event-stream" },
        cache: "no-store",
        signal: stream.signal,
      });
      if (!response.ok) {
        const problem = await problemOf(response);
        if (ended) return;
        if (passing(problem)) return end({});
        clearTimeout(watchdog);
        events.opened();
        return events.problem(url, problem);
      }
      if (!response.headers.get("Content-Type")?.startsWith("text/event-stream") || !response.body) return end({});
      events.opened();
      for await (const e of parse(response.body)) {
        if (ended) return;
        heard();
        if (e.retry !== undefined) retry = e.retry;
        if (e.data === undefined) continue;
        events.alive();
        if (e.event === "answer") events.answer(url, e.id, JSON.parse(e.data));
        else if (e.event === "error") events.problem(url, JSON.parse(e.data) as Problem);
      }
      throw new Error("the stream has ended");
    } catch {
      // The line is down, unless nobody listens any more.
      clearTimeout(watchdog);
      if (!stream.signal.aborted) end(retry === undefined ? {} : { retry });
    }
  };

  return {
    watch(url) {
      const stream = new AbortController();
      streams.set(url, stream);
      void listen(url, stream);
    },
    unwatch(url) {
      streams.get(url)?.abort();
      streams.delete(url);
    },
    close: () => end({}, false),
  };
}

/** One event of a stream. */
export interface StreamEvent {
  event: string;
  id?: string;
  data?: string;
  retry?: number;
}

/** parse yields the events of a stream: after every empty line, what came before it. */
export async function* parse(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop()!;
      for (const block of blocks) yield eventOf(block);
    }
  } finally {
    reader.releaseLock();
  }
}

function eventOf(block: string): StreamEvent {
  const e: StreamEvent = { event: "message" };
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon === 0) continue; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") e.event = value;
    else if (field === "id") e.id = value;
    else if (field === "data") e.data = e.data === undefined ? value : e.data + "\n" + value;
    else if (field === "retry" && /^\d+$/.test(value)) e.retry = Number(value);
  }
  return e;
}
