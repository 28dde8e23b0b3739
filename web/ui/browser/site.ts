import { createServer, type Server as HTTPServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A site of somebody else: one page, at every path. */
export class Site {
  private constructor(
    private readonly server: HTTPServer,
    readonly url: string,
  ) {}

  /** html returns the page, whose address it may need; policy is the site's own. */
  static async start(html: (url: string) => string, policy?: string): Promise<Site> {
    let page = "";
    const server = createServer((_, response) => {
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      if (policy) response.setHeader("Content-Security-Policy", policy);
      response.end(page);
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    page = html(url);
    return new Site(server, url);
  }

  async end(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}
