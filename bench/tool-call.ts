/**
 * One tool call through our transport, against a bare `docker exec -i` pipe that carries the same bytes to the same server in a
 * container of the same kind. The two alternate, so that other load on the machine affects both alike.
 */
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import type { SandboxEngine } from '../server/sandbox/port.ts'
import { INITIALIZE, SERVER_COMMAND } from './bare-docker.ts'
import { round, summary } from './statistics.ts'

const TOOL = { name: 'read_file', arguments: { path: 'bench.txt' } }

export async function measureToolCall(engine: SandboxEngine, rounds = 2000) {
  const owner = { deployment: `bench-${randomUUID()}`, instance: 'bench' }
  const ids = await Promise.all([engine.create(owner), engine.create(owner)])
  try {
    const connection = await engine.connect(ids[0], 1)
    const pipe = await openBarePipe(ids[1])
    const file = { path: 'bench.txt', content: 'x'.repeat(1000) }
    await connection.callTool('write_file', file, { timeoutMs: 10_000 })
    await pipe.request('tools/call', { name: 'write_file', arguments: file })
    const ways = [
      () => connection.callTool(TOOL.name, TOOL.arguments, { timeoutMs: 10_000 }),
      () => pipe.request('tools/call', TOOL)
    ]
    const [ours = [], bare = []] = await inTurns(ways, rounds)
    pipe.child.kill()
    await connection.close()
    const figures = { ours: summary(ours), bare: summary(bare) }
    return { ...figures, ratio: round(figures.ours.p50 / figures.bare.p50) }
  } finally {
    await Promise.all(ids.map((id) => engine.remove(id)))
  }
}

/** Runs each way `rounds` times, alternating, after a warm-up. Returns the times of each in ms. */
async function inTurns(ways: (() => Promise<unknown>)[], rounds: number): Promise<number[][]> {
  const times: number[][] = ways.map(() => [])
  for (let round = -Math.ceil(rounds / 5); round < rounds; round++) {
    for (const [i, way] of ways.entries()) {
      const started = performance.now()
      await way()
      if (round >= 0) times[i]?.push(performance.now() - started)
    }
  }
  return times
}

/** The minimum that a client can do: write a line, read a line, without parsing it. */
async function openBarePipe(containerId: string) {
  const child = spawn('docker', ['exec', '-i', containerId, ...SERVER_COMMAND])
  let answered: (() => void) | undefined
  child.stdout.on('data', (chunk: Buffer) => {
    if (chunk.at(-1) === 0x0a) answered?.()
  })
  const request = (method: string, params: object) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    answered = resolve
    const id = randomBytes(16).toString('base64url')
    child.stdin.write(`${JSON.stringify({ method, params, jsonrpc: '2.0', id })}\n`)
    return promise
  }
  await request('initialize', INITIALIZE)
  child.stdin.write(`${JSON.stringify({ method: 'notifications/initialized', jsonrpc: '2.0' })}\n`)
  return { child, request }
}
