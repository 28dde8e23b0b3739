/** Times writes instants in one zone. */
export class Times {
  readonly zone: string;
  private readonly full: Intl.DateTimeFormat;
  private readonly clock: Intl.DateTimeFormat;
  private readonly date: Intl.DateTimeFormat;
  private readonly day: Intl.DateTimeFormat;
  private readonly month: Intl.DateTimeFormat;

  constructor(readonly asked: string) {
    const format = (options: Intl.DateTimeFormatOptions, timeZone?: string) => new Intl.DateTimeFormat("en-GB", { hourCycle: "h23", ...options, ...(timeZone ? { timeZone } : {}) });
    const day = { day: "numeric", month: "short", year: "numeric" } as const;
    const time = { hour: "2-digit", minute: "2-digit" } as const;
    let own: string | undefined = asked;
    try {
      format(time, asked || undefined);
    } catch {
      own = undefined; // no such zone: the reader's own
    }
    this.full = format({ ...day, ...time }, own);
    this.clock = format(time, own);
    this.date = format(day, own);
    this.day = format({ day: "numeric", month: "short" }, own);
    this.month = format({ month: "short", year: "numeric" }, own);
    this.zone = this.full.resolvedOptions().timeZone;
  }

  /** at writes an instant whole. */
  at(t: number | string): string {
    return this.full.format(typeof t === "string" ? Date.parse(t) : t);
  }

  /** tick labels an axis whose labels are some seconds apart. */
  tick(t: number, apart: number): string {
    const clock = this.clock.format(t);
    if (apart >= 28 * 86_400) return this.month.format(t);
    return apart >= 86_400 || clock === "00:00" ? this.day.format(t) : clock;
  }

  /** span writes both edges of a range, the second as short as can be. */
  span(from: number | string, to: number | string): string {
    const a = new Date(from);
    const b = new Date(to);
    const days = (b.getTime() - a.getTime()) / 86_400_000;
    if (days >= 1 && this.clock.format(a) === "00:00" && this.clock.format(b) === "00:00") {
      const last = this.date.format(new Date(b.getTime() - 1));
      return this.date.format(a) === last ? last : `${this.date.format(a)} – ${last}`;
    }
    const sameDay = this.date.format(a) === this.date.format(b);
    return `${this.full.format(a)} – ${sameDay ? this.clock.format(b) : this.full.format(b)}`;
  }
}
