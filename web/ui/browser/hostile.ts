/** What nobody should call an item, and somebody will. */
export const hostile = [
  { item: "<img src=x onerror=window.hacked=1>", title: "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>", url: "javascript:window.hacked=1", image: "javascript:window.hacked=1" },
  { item: `"'><svg/onload=window.hacked=1>`, title: `"'\`><svg/onload=window.hacked=1>`, url: "java\tscript:window.hacked=1", image: "data:text/html,<script>parent.hacked=1</script>" },
  { item: "long", title: "W".repeat(1000), url: "https://example.com/" + "w".repeat(900) },
  { item: "rtl", title: "\u202eمرحبا بالعالم ‏שלום\u202e 123", url: "//example.com" },
  { item: "👩‍👩‍👧‍👦/../?a=b&c#d%20e", title: "👩‍👩‍👧‍👦 🏴‍☠️ Z̷̢̛a̴l̵g̷o̶" },
  { item: "${7*7}{{7*7}}<!--", title: "${window.hacked=1}{{constructor.constructor('window.hacked=1')()}}<!--lit-part-->" },
  { item: "__proto__", title: "__proto__" },
  { item: " ", title: " " },
];
