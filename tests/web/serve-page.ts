import { execFile } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Served, type ServeOptions, serve } from '../support/serve.ts'

const root = resolve(import.meta.dirname, '../..')

/** Builds the page unless the built one is newer than its source. */
export async function buildPage(): Promise<void> {
  const built = join(root, 'dist/web/index.html')
  const newest = ['web', 'contract'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(
      (name) => statSync(join(root, folder, name)).mtimeMs
    )
  )
  if (existsSync(built) && statSync(built).mtimeMs > Math.max(...newest)) return
  // In a process of its own: under the test runner's NODE_ENV it would be another page than the one that ships.
  const vite = [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--logLevel', 'error']
  await promisify(execFile)(process.execPath, vite, { cwd: root, env: { ...process.env, NODE_ENV: 'production' } })
}

/** The real server with the current page, real sandboxes and the demo model. */
export async function servePage(options: ServeOptions = {}, env: Record<string, string> = {}): Promise<Served> {
  await buildPage()
  return serve({ WARM_POOL_SIZE: '1', ...env }, options)
}
