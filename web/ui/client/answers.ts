// What the API answers, as far as browsers ask. Fields are only ever added.

/** A number with its bounds: exact, or an estimate that lies between low and high with 95 %. */
export interface Count {
  value: number;
  low: number;
  high: number;
  method: "exact" | "hll" | "count-min";
}

/** The range that an answer is about, and how settled it is. */
export interface Ranged {
  from: string;
  to: string;
  clipped?: boolean;
  complete: boolean;
  final: boolean;
  watermark: string | null;
  hint?: string;
}

/** What was said of an item last. All of it comes from events: it is text, never HTML. */
export interface Described {
  title?: string;
  url?: string;
  image?: string;
}

export interface Bucket {
  start: string;
  end: string;
  complete: boolean;
  viewers?: Count;
  counts: Record<string, Count>;
}

export interface DimensionValue {
  value: string;
  other?: boolean;
  viewers?: Count;
  counts: Record<string, Count>;
}

/** The answer of /v1/viewers and /v1/counts about one subject. */
export interface Answer extends Ranged, Described {
  item?: string;
  type: string;
  viewers?: Count;
  counts: Record<string, Count>;
  series?: Bucket[];
  values?: DimensionValue[];
}

/** One answer, or one for each of several items. */
export type Answers = Answer | { items: Answer[] };

export interface Ranked extends Described {
  rank: number;
  item?: string;
  value?: string;
  views: Count;
  viewers?: Count;
  /** Of by=rising: how far the count stands out, and what was to be expected. */
  score?: number;
  expected?: Count;
}

/** The answer of /v1/top. */
export interface Top extends Ranged {
  by: "views" | "viewers" | "rising";
  type: string;
  certified: boolean;
  items: Ranked[];
}

/** A refusal, as RFC 9457 has it. */
export interface Problem {
  status: number;
  title: string;
  detail: string;
  parameter?: string;
}
