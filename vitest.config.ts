import { defineConfig } from 'vitest/config'
import { PATIENCE_MS } from './tests/support/patience-ms.ts'

/** The page as a whole in a browser, and tests with their own engine and Redis. Both wait most of the time. */
const page = ['tests/web/*.{docker,redis,chromium}.test.ts', 'tests/chaos/**/*.{docker,redis,chromium}.test.ts']
/** The views and dialogs of the page, in a browser too. */
const views = ['tests/web/*/**/*.{docker,redis,chromium}.test.ts']
/** Real child servers, and Redis without the engine. */
const gateway = ['tests/gateway/**/*.test.ts', '**/*.process.test.ts', 'server/**/*.redis.test.ts']
const engine = ['**/*.docker.test.ts', 'tests/e2e/**/*.test.ts']
const ignored = ['**/node_modules/**', '**/dist/**']
const patient = {
  globalSetup: ['tests/support/own-temp-folder.ts'],
  setupFiles: ['tests/support/patience.ts'],
  expect: { poll: { timeout: PATIENCE_MS } }
}
// Files share their worker, which saves a third of the CPU time. So `vi.mock` is not for unit tests: it would reach the next file.
const unit = { ...patient, testTimeout: 2 * PATIENCE_MS, hookTimeout: 2 * PATIENCE_MS, isolate: false }
// Each lane runs one file at a time: on two cores, files that time out on each other's load find no bugs.
const lane = { ...patient, testTimeout: 120_000, hookTimeout: 300_000, fileParallelism: false }

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...ignored, ...page, ...views, ...gateway, ...engine],
          ...unit
        }
      },
      { test: { name: 'engine', include: engine, exclude: [...ignored, ...page, ...views, ...gateway], ...lane } },
      { test: { name: 'page', include: page, exclude: ignored, ...lane } },
      { test: { name: 'views', include: views, exclude: ignored, ...lane } },
      { test: { name: 'gateway', include: gateway, exclude: ignored, ...lane } }
    ]
  }
})
