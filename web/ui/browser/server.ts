import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const program = process.env["TIDEMARK"] ?? new URL("../../../bin/tidemark", import.meta.url).pathname;

export interface Event {
  item: string;
  [field: string]: unknown;
}

/** A real server, on a folder of its own, which may be killed and started again. */
export class Server {
  private process?: ChildProcess;
  private ended?: Promise<void>;
  url = "";

  private constructor(
    private readonly data: string,
    private readonly args: string[],
  ) {}

  static async start(...args: string[]): Promise<Server> {
    const server = new Server(await mkdtemp(join(tmpdir(), "tidemark-ui-")), args);
    await server.run();
    return server;
  }

  /** run starts it, where it was before if it was. */
  async run(): Promise<void> {
    const listen = this.url ? new URL(this.url).host : "127.0.0.1:0";
    const child = spawn(program, ["serve", "--listen", listen, "--data", join(this.data, "data"), ...this.args], { stdio: ["ignore", "ignore", "pipe"] });
    this.process = child;
    this.ended = new Promise((done) => child.once("exit", () => done()));
    let log = "";
    this.url = await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", () => reject(new Error("the server has ended:\n" + log)));
      child.stderr!.on("data", (b: Buffer) => {
        log += b.toString();
        const told = /url=(http:\/\/[^ \n]+)/.exec(log) ?? /"url":"(http:[^"]+)"/.exec(log);
        if (told) resolve(told[1]!);
      });
    });
    while (!(await fetch(this.url + "/readyz")).ok) await new Promise((r) => setTimeout(r, 20));
  }

  async kill(): Promise<void> {
    this.process?.kill("SIGKILL");
    await this.ended;
  }

  /** key makes a key, of which the server knows within two seconds. */
  key(...args: string[]): string {
    const made = JSON.parse(execFileSync(program, ["keys", "add", "--json", "--data", join(this.data, "data"), ...args], { encoding: "utf8" })) as { key: string };
    return made.key;
  }

  /** feed sends a made-up hour at once, and then what happens, until what it returns is called. */
  async feed(): Promise<() => Promise<void>> {
    const load = spawn(program, ["load", "--server", this.url, "--backlog", "1h", "--rate", "150", "--duration", "2h"], { stdio: "ignore" });
    const ended = new Promise((done) => load.once("exit", done));
    const watermark = async () => (await this.ask<{ watermark: string | null }>("/v1/counts?last=5m")).watermark ?? "";
    await until(async () => Date.parse(await watermark()) > Date.now() - 60_000);
    return async () => {
      load.kill("SIGKILL");
      await ended;
    };
  }

  /** remove ends it and removes its data. */
  async remove(): Promise<void> {
    await this.kill();
    await rm(this.data, { recursive: true, force: true });
  }

  async send(...events: Event[]): Promise<void> {
    const response = await fetch(this.url + "/v1/events", { method: "POST", body: JSON.stringify(events) });
    const receipt = (await response.json()) as { accepted: number };
    if (receipt.accepted !== events.length) throw new Error(JSON.stringify(receipt));
  }

  async ask<T>(url: string): Promise<T> {
    const response = await fetch(this.url + url);
    if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }
}

/** views are n views of an item, by as many people. */
export function views(item: string, n: number, fields: object = {}): Event[] {
  return Array.from({ length: n }, (_, i) => ({ item, user: `${item.slice(0, 20)}-${i}`, id: crypto.randomUUID(), country: i % 3 ? "DE" : "FR", ...fields }));
}

/** until waits for something to be so. */
export async function until(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) await new Promise((r) => setTimeout(r, 50));
}
