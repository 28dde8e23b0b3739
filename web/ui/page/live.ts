import { Client, type ClientOptions, type Line, type Update } from "../client";

interface Use {
  update: Update<unknown>;
  end: () => void;
  used: boolean;
}

/**
 * Live lets a page be written as a function of answers: what is used while the page
 * is drawn is watched from then on, and what was not used any more is not.
 */
export class Live {
  private readonly client: Client;
  private readonly uses = new Map<string, Use>();

  constructor(
    private readonly changed: () => void,
    options: ClientOptions,
  ) {
    this.client = new Client(options);
  }

  /** use returns what is known of a question. */
  use<T>(url: string): Update<T> {
    let u = this.uses.get(url);
    if (!u) {
      let first = true; // which is told at once, while the page is being drawn
      const own: Use = { update: { line: { state: "connecting", since: Date.now() } }, end: () => {}, used: true };
      this.uses.set(url, own);
      own.end = this.client.watch<unknown>(url, (update) => {
        own.update = update;
        if (!first) this.changed();
      });
      first = false;
      u = own;
    }
    u.used = true;
    return u.update as Update<T>;
  }

  /** line is that of everything. */
  get line(): Line | undefined {
    return [...this.uses.values()][0]?.update.line;
  }

  /** confirmed is when the oldest of what is shown was last known to be true. */
  get confirmed(): number | undefined {
    const all = [...this.uses.values()].flatMap((u) => u.update.confirmed ?? []);
    return all.length ? Math.min(...all) : undefined;
  }

  /** settle ends what was not used since it was called last. */
  settle(): void {
    for (const [url, u] of this.uses) {
      if (u.used) {
        u.used = false;
        continue;
      }
      u.end();
      this.uses.delete(url);
    }
  }
}
