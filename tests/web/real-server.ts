/** The real server with its real sandboxes and the demo model, as a process that a test may kill and start again. */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from '../support/free-port.ts'
import { productArgs, productEnv } from '../support/product.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const READY_WITHIN_MS = 120_000
const root = resolve(import.meta.dirname, '../..')

/** So that what is tested is what stands in the source. */
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

export class RealServer {
  readonly port: number
  readonly dataDir: string
  #child: ChildProcess | undefined
  #log = ''

  private constructor(port: number, dataDir: string) {
    this.port = port
    this.dataDir = dataDir
  }

  static async start(): Promise<RealServer> {
    await buildPage()
    const server = new RealServer(await freePort(), temporaryFolder())
    await server.run()
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async run(): Promise<void> {
    const settings = { LLM_PROVIDER: 'demo', PORT: String(this.port), HOST: '127.0.0.1', DATA_DIR: this.dataDir }
    const child = spawn(process.execPath, [...productArgs('main'), 'serve'], {
      cwd: this.dataDir,
      env: {
        PATH: process.env.PATH,
        TMPDIR: process.env.TMPDIR,
        HOME: process.env.HOME,
        DOCKER_HOST: process.env.DOCKER_HOST,
        ...productEnv(),
        WARM_POOL_SIZE: '1',
        ...settings
      },
      stdio: ['ignore', 'ignore', 'pipe']
    })
    child.stderr.on('data', (data) => {
      this.#log += data
    })
    this.#child = child
    const until = Date.now() + READY_WITHIN_MS
    while (!(await fetch(`${this.url}/readyz`).catch(() => null))?.ok) {
      if (child.exitCode !== null || Date.now() > until) throw new Error(`No server: ${this.#log.slice(-500)}`)
      await wait(100)
    }
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill(signal)
    await once(child, 'exit')
  }

  async stop(): Promise<void> {
    await this.end('SIGTERM')
    await rm(this.dataDir, { recursive: true, force: true })
  }
}
