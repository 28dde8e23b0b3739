import axe from "axe-core";
import type { Page } from "playwright-core";

/** violations are what axe finds that is serious. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => (await (window as unknown as { axe: typeof axe }).axe.run()).violations.map((v) => ({ id: v.id, impact: v.impact, nodes: v.nodes.map((n) => n.html).slice(0, 3) })));
  return found.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => JSON.stringify(v));
}
