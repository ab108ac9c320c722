/**
 * Sets long timeouts for all tests. A test that waits for something proves no more with a short timeout, and fails on a busy machine.
 * Tests can set another timeout explicitly.
 */
import { vi } from 'vitest'
import { PATIENCE_MS } from './patience-ms.ts'

type Options = number | { timeout?: number; interval?: number } | undefined
const patient = (options: Options) =>
  typeof options === 'number' ? { timeout: options } : { timeout: PATIENCE_MS, ...options }

const { waitFor, waitUntil } = vi
vi.waitFor = (check, options) => waitFor(check, patient(options))
vi.waitUntil = (check, options) => waitUntil(check, patient(options))
