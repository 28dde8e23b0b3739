import type { Live } from "./live";
import type { State } from "./state";
import type { Times } from "./times";

/** What the server says of itself, as far as pages use it. */
export interface Status {
  version: string;
  view_types: string[];
  dimensions: string[];
  types: string[];
  kept: { from: string; to: string } | null;
  retention: { period: string; for: string; from: string | null }[];
  logs: {
    names: string[];
    done: boolean;
    reading: boolean;
    partitions?: { partition: number; position: number; sealed: number; watermark: string | null; open_windows: number }[];
  }[];
  sinks?: Record<string, unknown>[];
}

/** What a view is drawn from. */
export interface Context {
  state: State;
  /** What changes every second. */
  live: Live;
  /** What is as good a quarter of a minute later, and costs more to answer. */
  slow: Live;
  times: Times;
  status: Status | undefined;
  /** go shows another state; replace leaves no trace to go back to. */
  go(change: Partial<State>, replace?: boolean): void;
}
