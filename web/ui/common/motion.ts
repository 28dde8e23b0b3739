/**
 * slide remembers where the rows of a list are; what it returns, called once they
 * have been rendered anew, lets those that moved slide to their new places. Not for
 * readers who asked for less motion.
 */
export function slide(list: ParentNode): () => void {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return () => {};
  const rows = () => list.querySelectorAll<HTMLElement>("[data-key]");
  const before = new Map([...rows()].map((row) => [row.dataset["key"], row.offsetTop]));
  return () => {
    for (const row of rows()) {
      const was = before.get(row.dataset["key"]);
      const by = was === undefined ? 0 : was - row.offsetTop;
      if (by !== 0) row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 200, easing: "ease-out" });
    }
  };
}
