import { describe, expect, it } from "vitest";
import { duration, explain, range, ranks, short, why } from "./format";
import { link } from "./safe";

const exact = (value: number) => ({ value, low: value, high: value, method: "exact" as const });

describe("numbers", () => {
  it.each([
    [0, "0"],
    [999, "999"],
    [9_999, "9,999"],
    [10_000, "10.0 K"],
    [12_449, "12.4 K"],
    [99_949, "99.9 K"],
    [123_456, "123 K"],
    [999_949, "1.00 M"],
    [1_240_000, "1.24 M"],
    [2_500_000_000, "2.50 G"],
  ])("%d is short %s", (n, text) => expect(short(n)).toBe(text));

  it("say how sure they are", () => {
    expect(explain(undefined)).toBe("unknown");
    expect(explain(exact(12345))).toBe("12,345");
    expect(explain({ value: 812, low: 801, high: 823, method: "hll" })).toBe("812, give or take 11; 95 % sure");
    expect(explain({ value: 812, low: 812, high: 823, method: "hll" })).toBe("812, from 812 to 823; 95 % sure");
  });

  it("share their rank", () => expect(ranks([9, 7, 7, 7, 3])).toEqual([1, 2, 2, 2, 5]));
});

it("words", () => {
  expect(duration(40_400)).toBe("40 s");
  expect(duration(3_600_000 * 5)).toBe("5 h");
  expect(range("5m")).toBe("5 min");
  expect(range("1d")).toBe("1 day");
  expect(range("all")).toBe("all time");
  expect(why({ rank: 1, views: exact(312), expected: exact(21.2) }, "5m")).toBe("312 in 5 min, 21 expected");
  expect(why({ rank: 1, views: exact(312), expected: exact(0.52) }, "1h")).toBe("312 in 1 h, 0.5 expected");
  expect(why({ rank: 1, views: exact(312) }, "1h")).toBeUndefined();
});

describe("a URL of an event", () => {
  it.each(["javascript:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:https://x/y", "/relative", "//x", "", undefined])(
    "%j is none",
    (text) => expect(link(text)).toBeUndefined(),
  );
  it("may be http and https", () => {
    expect(link("https://example.com/a b")).toBe("https://example.com/a%20b");
    expect(link("http://example.com/")).toBe("http://example.com/");
    expect(link("/v/1", "https://site.example/x")).toBe("https://site.example/v/1");
    expect(link("javascript:alert(1)", "https://site.example/x")).toBeUndefined();
  });
});
