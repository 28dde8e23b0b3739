/**
 * How long to wait before trying again, in milliseconds: up to 3 s at first, twice
 * that each time, 20 s at most, and never less than a sixth of it. It is spread, so
 * that the clients of a server that was away do not all come back at once.
 */
export function backoff(attempt: number, random: () => number = Math.random): number {
  const most = Math.min(20_000, 3_000 * 2 ** Math.min(attempt, 10));
  return most / 6 + (random() * most * 5) / 6;
}

/** The wait that a server asks for in the reason it closes with ("retry: 1500"). */
export function retryHint(reason: string): number | undefined {
  const told = /^retry: (\d{1,6})$/.exec(reason.trim());
  return told ? Number(told[1]) : undefined;
}
