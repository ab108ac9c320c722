import { defineConfig } from 'vitest/config'

const needsServices = [
  '**/*.docker.test.ts',
  '**/*.redis.test.ts',
  'tests/{e2e,gateway}/**/*.test.ts',
  // Real child servers: no service, but seconds each, and sensitive to a crowd.
  'server/tools/connections/{connections,owners,instances}.test.ts',
  'server/gateway/call-with-failover.test.ts'
]
const ignored = ['**/node_modules/**', '**/dist/**']

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['**/*.test.ts'], exclude: [...ignored, ...needsServices] } },
      {
        test: {
          name: 'services',
          include: needsServices,
          exclude: ignored,
          testTimeout: 120_000,
          hookTimeout: 300_000,
          // One engine, two cores: files that time out on each other's load find no bugs.
          fileParallelism: false
        }
      }
    ]
  }
})
