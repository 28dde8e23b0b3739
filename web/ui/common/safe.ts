/**
 * link returns a URL that came with an event, if it is one that may be followed or
 * loaded: http or https. Anything else (javascript:, data:, a relative one that
 * belongs to another site) is none.
 */
export function link(text: string | undefined, base?: string): string | undefined {
  if (!text) return undefined;
  try {
    const u = new URL(text, base);
    return u.protocol === "https:" || u.protocol === "http:" ? u.href : undefined;
  } catch {
    return undefined;
  }
}
