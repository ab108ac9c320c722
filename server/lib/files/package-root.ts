import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AppError } from '../errors.ts'

let found: string | undefined

/** The folder of this package, from source (server/…) as from the bundle (dist/main.mjs). */
export function packageRoot(): string {
  found ??= search(import.meta.dirname)
  return found
}

function search(start: string): string {
  for (let dir = start; ; dir = dirname(dir)) {
    const file = join(dir, 'package.json')
    if (existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).name === 'mcp-orchestrator') return dir
    if (dir === dirname(dir)) break
  }
  const message = `No package.json of mcp-orchestrator above ${start}: reinstall.`
  throw new AppError('internal', 'package_root_missing', message)
}
