import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new empty folder. The test run removes it at its end (`own-temp-folder.ts`); call `discard` only for large contents. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 't-'))
}

export function discard(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}
