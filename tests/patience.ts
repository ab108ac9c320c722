/**
 * How long a test waits for what must come is no part of what it proves: what never comes fails it all the same, and a loaded
 * machine takes its time. So all wait for long, and those who say so for another time.
 */
import { vi } from 'vitest'
import { PATIENCE_MS } from './patience-ms.ts'

type Options = number | { timeout?: number; interval?: number } | undefined
const patient = (options: Options) =>
  typeof options === 'number' ? { timeout: options } : { timeout: PATIENCE_MS, ...options }

const { waitFor, waitUntil } = vi
vi.waitFor = (check, options) => waitFor(check, patient(options))
vi.waitUntil = (check, options) => waitUntil(check, patient(options))
