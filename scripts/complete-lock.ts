/**
 * Completes package-lock.json after `npm install` from a registry mirror that has this platform's packages only: adds the
 * optional packages of the other platforms, by name and version, so that `npm ci` finds the lock complete everywhere.
 */
import { readFileSync, writeFileSync } from 'node:fs'

interface LockEntry {
  version?: string
  dev?: boolean
  optionalDependencies?: Record<string, string>
}

const FILE = 'package-lock.json'
const SYSTEMS = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32', 'aix', 'netbsd', 'openbsd', 'sunos']
const PROCESSORS = ['arm64', 'x64', 'ppc64', 's390x', 'wasm32', 'riscv64', 'loong64', 'ia32', 'arm']

const lock = JSON.parse(readFileSync(FILE, 'utf8')) as { packages: Record<string, LockEntry> }
const { packages } = lock

/** Looks a package up like Node: beside the package that needs it, then further up. */
function lookUp(from: string, name: string): LockEntry | undefined {
  for (let dir = from; ; dir = dir.slice(0, Math.max(0, dir.lastIndexOf('/node_modules/')))) {
    const entry = packages[`${dir ? `${dir}/` : ''}node_modules/${name}`]
    if (entry || !dir) return entry
  }
}

function platformOf(name: string): { cpu?: string[]; os?: string[]; libc?: string[] } {
  const tail = name.split('/').at(-1) ?? ''
  const os = SYSTEMS.find((system) => tail.includes(system))
  const cpu = PROCESSORS.find((processor) => new RegExp(`(^|-)${processor}(-|$)`).test(tail))
  const libc = tail.includes('musl') ? 'musl' : 'glibc'
  return { ...(cpu && { cpu: [cpu] }), ...(os === 'linux' && { libc: [libc] }), ...(os && { os: [os] }) }
}

let added = 0
for (const [path, entry] of Object.entries({ ...packages })) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const found = lookUp(path, name)
    const platform = platformOf(name)
    if (!/^\d/.test(version) || found?.version === version || (!platform.os && !platform.cpu)) continue
    const key = packages[`node_modules/${name}`] ? `${path}/node_modules/${name}` : `node_modules/${name}`
    packages[key] = { version, ...platform, ...(entry.dev && { dev: true }), ...{ optional: true } }
    added += 1
  }
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)))
writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`)
console.error(`complete-lock: added ${added} packages`)
