import type { Problem } from "./answers";

/** What a connection tells its client. After closed it says nothing more. */
export interface Events {
  /** The server is there. */
  opened(): void;
  /** All answers told so far are still true, as far as the server said something to the contrary. */
  alive(): void;
  answer(url: string, id: string | undefined, answer: unknown): void;
  problem(url: string, problem: Problem): void;
  /** The connection has ended. retry is when to come back, in milliseconds, where the server said so. */
  closed(how: { retry?: number; final?: Problem }): void;
}

/** A way to be told answers: a websocket, server-sent events, or asking again and again. */
export interface Connection {
  /** after is the id of the answer that the client has. */
  watch(url: string, after?: string): void;
  unwatch(url: string): void;
  /** close ends it; closed is not called. */
  close(): void;
}

/** Where a server is, and what a client may. */
export interface Server {
  /** An absolute URL, without a slash at its end. */
  base: string;
  /** A read key; undefined where none is needed. */
  key?: string;
  /** How often a question is asked again where it is polled, in milliseconds. */
  pollEvery: number;
  fetch: typeof fetch;
  WebSocket?: typeof WebSocket;
}

/** After so long without a word a connection is taken for dead: the server says something every 15 s. */
export const silence = 40_000;

/**
 * address returns where a question is asked. The key is a parameter: a header of
 * authorization would cost each request of a page elsewhere a second one.
 */
export function address(server: Server, url: string): string {
  const u = new URL(url, server.base + "/");
  if (server.key) u.searchParams.set("key", server.key);
  return u.href;
}

/** problemOf returns what a response that is no answer says. */
export async function problemOf(response: Response): Promise<Problem> {
  const stated = { status: response.status, title: response.statusText, detail: `the server answered ${response.status}` };
  try {
    return { ...stated, ...((await response.json()) as Partial<Problem>) };
  } catch {
    return stated; // no JSON: something between here and the server
  }
}

/** passing tells whether asking again may help. */
export function passing(problem: Problem): boolean {
  return problem.status >= 500 || problem.status === 429 || problem.status === 408;
}
