import { defineConfig } from 'vitest/config'
import { PATIENCE_MS } from './tests/support/patience-ms.ts'

const services = ['**/*.docker.test.ts', '**/*.redis.test.ts', 'tests/{e2e,gateway}/**/*.test.ts']
/** Real child servers, a browser, or an engine and a Redis of their own: seconds each, and nothing of the engine that the others share. */
const apart = [
  'tests/gateway/**/!(*.docker).test.ts',
  '**/*.process.test.ts',
  'tests/private-dockerd.docker.test.ts',
  'tests/e2e/outages.redis.test.ts',
  'tests/web/*.chromium.test.ts',
  'tests/chaos/*.redis.test.ts'
]
const ignored = ['**/node_modules/**', '**/dist/**']
const patient = {
  globalSetup: ['tests/support/own-temp-folder.ts'],
  setupFiles: ['tests/support/patience.ts'],
  expect: { poll: { timeout: PATIENCE_MS } }
}
const unit = { ...patient, testTimeout: 2 * PATIENCE_MS, hookTimeout: 2 * PATIENCE_MS }
// On two cores, files that time out on each other's load find no bugs: one at a time in each of the two lanes.
const lane = { ...patient, testTimeout: 120_000, hookTimeout: 300_000, fileParallelism: false }

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['**/*.test.ts'], exclude: [...ignored, ...services, ...apart], ...unit } },
      { test: { name: 'engine', include: services, exclude: [...ignored, ...apart], ...lane } },
      { test: { name: 'apart', include: apart, exclude: ignored, ...lane } }
    ]
  }
})
