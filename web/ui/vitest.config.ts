import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "client", include: ["client/*.test.ts", "common/*.test.ts", "page/*.test.ts", "widget/*.test.ts", "count/*.test.ts", "sizes.test.ts"] } },
      { test: { name: "browser", include: ["browser/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 } },
      { test: { name: "screenshots", include: ["browser/screenshots.ts"], testTimeout: 300_000, hookTimeout: 300_000 } },
    ],
  },
});
