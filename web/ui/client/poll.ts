import { address, passing, problemOf, type Connection, type Events, type Server } from "./connection";

/** poll watches by asking each question again and again: where nothing else passes. */
export function poll(server: Server, events: Events): Connection {
  const asking = new Map<string, { abort: AbortController; timer?: ReturnType<typeof setTimeout> }>();
  let ended = false;

  const end = (tell = true) => {
    if (ended) return;
    ended = true;
    for (const a of asking.values()) stop(a);
    if (tell) events.closed({});
  };
  const stop = (a: { abort: AbortController; timer?: ReturnType<typeof setTimeout> }) => {
    a.abort.abort();
    clearTimeout(a.timer);
  };

  const ask = async (url: string) => {
    const own = asking.get(url);
    if (!own) return;
    let wait = server.pollEvery;
    try {
      const response = await server.fetch(address(server, url), { cache: "no-store", signal: own.abort.signal });
      const body: unknown = response.ok ? await response.json() : undefined;
      const problem = response.ok ? undefined : await problemOf(response);
      if (ended || own.abort.signal.aborted) return;
      events.opened();
      if (!problem) events.answer(url, undefined, body);
      else events.problem(url, problem);
      if (problem && !passing(problem)) return;
      wait = Math.max(wait, 1_000 * Number(response.headers.get("Retry-After") ?? 0) || 0);
    } catch {
      if (!own.abort.signal.aborted) end();
      return;
    }
    own.timer = setTimeout(() => void ask(url), wait * (0.8 + 0.4 * Math.random()));
  };

  return {
    watch(url) {
      asking.set(url, { abort: new AbortController() });
      void ask(url);
    },
    unwatch(url) {
      const a = asking.get(url);
      if (a) stop(a);
      asking.delete(url);
    },
    close: () => end(false),
  };
}
