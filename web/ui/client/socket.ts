import type { Problem } from "./answers";
import { retryHint } from "./backoff";
import { silence, type Connection, type Events, type Server } from "./connection";

interface Message {
  watch?: string;
  id?: string;
  answer?: unknown;
  error?: Problem;
}

/** socket watches by the websocket of /v1/live. */
export function socket(server: Server, events: Events): Connection {
  const protocols = ["tidemark.v1"];
  if (server.key) protocols.push("tidemark.key." + server.key);
  const names = new Map<string, string>(); // of watches, by URL
  const urls = new Map<string, string>(); // the other way round
  const ws = new server.WebSocket!(server.base.replace(/^http/, "ws") + "/v1/live", protocols);
  let ended = false;
  let count = 0;
  let watchdog: ReturnType<typeof setTimeout>;

  const end = (how: { retry?: number; final?: Problem }, tell = true) => {
    if (ended) return;
    ended = true;
    clearTimeout(watchdog);
    ws.close();
    if (tell) events.closed(how);
  };
  const heard = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => end({}), silence);
  };
  const say = (what: object) => ws.send(JSON.stringify(what));

  heard();
  ws.onopen = () => {
    if (ended) return;
    heard();
    events.opened();
  };
  ws.onmessage = (e: MessageEvent) => {
    if (ended) return;
    heard();
    const m = JSON.parse(String(e.data)) as Message;
    events.alive();
    const url = m.watch && urls.get(m.watch);
    if (!url) return;
    if (m.error) events.problem(url, m.error);
    else if ("answer" in m) events.answer(url, m.id, m.answer);
  };
  ws.onclose = (e: CloseEvent) => {
    if (e.code >= 4500 && e.code <= 4999) {
      const status = e.code === 4501 ? 401 : e.code === 4502 ? 429 : 400;
      end({ final: { status, title: "The server closed the connection", detail: e.reason || `close code ${e.code}` } });
      return;
    }
    const retry = retryHint(e.reason);
    end(retry === undefined ? {} : { retry });
  };

  return {
    watch(url, after) {
      if (ws.readyState !== 1) return; // once it is open, all are watched
      const name = "w" + ++count;
      names.set(url, name);
      urls.set(name, url);
      say({ watch: name, url, ...(after ? { after } : {}) });
    },
    unwatch(url) {
      const name = names.get(url);
      if (!name) return;
      names.delete(url);
      urls.delete(name);
      say({ unwatch: name });
    },
    close: () => end({}, false),
  };
}
