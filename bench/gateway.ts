/** Measures the gateway from the client's side, against calling the same child directly and through a relay that only copies bytes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { packageRoot } from '../server/lib/files/package-root.ts'
import { freePort } from '../tests/support/free-port.ts'
import { serve, stopServers } from '../tests/support/serve.ts'
import { callTimes, throughput } from './gateway/calls.ts'
import { firstListTimes } from './gateway/first-list.ts'
import { speedTable } from './gateway/speed-table.ts'
import { startTimes } from './gateway/start.ts'
import { eightServers, toolsListBytes } from './gateway/tools-list.ts'
import { EVERYTHING, everythingEntry, httpWays, registryFolder, stdioWays, type Way } from './gateway/ways.ts'
import { NO_LIMITS } from './no-limits.ts'
import { step } from './statistics.ts'

export async function gatewayFigures(): Promise<object> {
  for (const file of ['gateway.mjs', 'main.mjs']) {
    if (!existsSync(join(packageRoot(), 'dist', file))) throw new Error(`dist/${file} is missing: run npm run build.`)
  }
  const started = await step('gateway: start and memory', startTimes)
  const stdio = await step('gateway: calls over stdio', stdioFigures)
  const http = await step('gateway: calls over HTTP', httpFigures)
  const eight = await eightServers()
  const firstList = await firstListTimes(eight)
  console.error(`${speedTable({ ...started, ...stdio, ...http, firstList })}\n`)
  return {
    ...started,
    ...stdio,
    ...http,
    firstList,
    toolsListBytes: await step('gateway: lists of tools', () => toolsListBytes(eight))
  }
}

async function stdioFigures() {
  const folder = registryFolder({ everything: everythingEntry })
  const ways = await stdioWays(folder)
  const stdioCallMs = await callTimes(ways)
  const stdioThroughput = await throughput(ways)
  await closeAll(ways)
  folder.remove()
  return { stdioCallMs, stdioThroughput }
}

/** Both the child's own HTTP and its stdio can be seen as the direct way, so both ratios are shown. */
async function httpFigures() {
  const folder = registryFolder({ everything: everythingEntry })
  const settings = { ...NO_LIMITS, MCP_CONFIG: folder.config }
  const served = await serve(settings, { bundle: true })
  const exposed = await serve({ ...settings, GATEWAY_EXPOSE: 'everything' }, { bundle: true })
  const port = await freePort()
  const child = spawn(EVERYTHING[0], [EVERYTHING[1], 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: 'ignore'
  })
  const url = `http://127.0.0.1:${port}/mcp`
  await reachable(url, child)
  const ways = await httpWays({
    gateway: { url: `${served.url}/mcp`, pid: served.child.pid ?? 0 },
    exposed: { url: `${exposed.url}/mcp`, pid: exposed.child.pid ?? 0 },
    child: { url, pid: child.pid ?? 0 }
  })
  const httpCallMs = await callTimes(ways)
  const httpThroughput = await throughput(ways)
  await closeAll(ways)
  const exited = once(child, 'exit')
  child.kill()
  await exited
  await stopServers()
  folder.remove()
  return { httpCallMs, httpThroughput }
}

async function closeAll(ways: Record<string, Way>): Promise<void> {
  await Promise.all(Object.values(ways).map((way) => way.close()))
}

async function reachable(url: string, child: ChildProcess): Promise<void> {
  const end = Date.now() + 20_000
  while (!(await fetch(url).catch(() => undefined))) {
    if (child.exitCode !== null || Date.now() > end) throw new Error('The child does not listen.')
    await wait(50)
  }
}
