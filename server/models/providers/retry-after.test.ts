import { expect, test } from 'vitest'
import { retryAfterMs } from './retry-after.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')

test.each([
  [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
  [{ 'retry-after': '2' }, 2_000],
  [{ 'retry-after': '1.5' }, 1_500],
  [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:07 GMT' }, 7_000],
  [{ 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' }, 0],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'retry-after': '-5' }, undefined],
  [{ 'retry-after': '' }, undefined],
  [{}, undefined],
  [undefined, undefined]
])('%o: %s', (headers, expected) => {
  expect(retryAfterMs(headers, undefined, NOW)).toBe(expected)
})

test('the body of Gemini', () => {
  expect(retryAfterMs({}, '{"error":{"details":[{"retryDelay": "34.5s"}]}}', NOW)).toBe(34_500)
})
