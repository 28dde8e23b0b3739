import { expect, it } from "vitest";
import { ask, href, ranged, read, stepOf } from "./state";

const at = (path: string) => read(new URL(path, "http://server"));

it.each(["/", "/?by=rising", "/?by=viewers&last=24h&type=sale&dimension=country&value=DE", "/?at=1767225600000", "/item?item=a%26b%2Fc%3F%23", "/item?item=x&from=1&to=2", "/status"])(
  "%s says the same when it is written again",
  (path) => expect(href(at(path))).toBe(path),
);

it("what is wrong has its default", () => {
  expect(at("/?by=x&last=").by).toBe("views");
  expect(at("/?by=rising&last=30d").last).toBe("1h");
  expect(at("/nowhere").page).toBe("home");
});

it("asks", () => {
  expect(ask("top", { by: "views", type: "", item: ["a", "b&c"] })).toBe("/v1/top?by=views&item=a&item=b%26c");
  expect(ranged(at("/?from=1&to=2&last=5m&at=7"))).toEqual({ from: "1", to: "2", at: "7" });
  expect(["5m", "6h", "24h", "14d", "30d", "all"].map((last) => stepOf(at("/?last=" + last)))).toEqual(["minute", "minute", "hour", "hour", "day", "day"]);
  expect(stepOf(at("/item?item=x&from=2026-01-01T00:00:00Z&to=1767229200000"))).toBe("minute");
});
