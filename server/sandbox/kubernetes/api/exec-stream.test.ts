import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { ExecStream } from './exec-stream.ts'

const MB = 1024 * 1024
let server: WebSocketServer
beforeEach(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
})
afterEach(() => {
  for (const client of server.clients) client.terminate()
  server.close()
})

/** Our end, and the pod's end as the API server has it. */
async function open(pingMs?: number) {
  const connected = once(server, 'connection')
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const stream = new ExecStream(socket, pingMs)
  const [pod] = (await connected) as [WebSocket]
  if (socket.readyState !== socket.OPEN) await once(socket, 'open')
  const say = (channel: number, payload: Buffer | string) =>
    pod.send(Buffer.concat([Buffer.of(channel), Buffer.from(payload)]))
  return { stream, pod, say }
}

async function textOf(stream: ExecStream): Promise<string> {
  const parts: Buffer[] = []
  for await (const chunk of stream) parts.push(chunk)
  return Buffer.concat(parts).toString()
}

const failure = (code: number) =>
  JSON.stringify({
    status: 'Failure',
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] }
  })

it('keeps output and error output apart, and knows the exit code', async () => {
  const { stream, pod, say } = await open()
  const errors: string[] = []
  stream.demux({ stdout: () => {}, stderr: (payload) => errors.push(String(payload)) })
  say(1, 'one ')
  say(2, 'oops')
  say(1, '')
  say(9, 'of no channel that we know')
  say(1, 'two')
  say(3, failure(77))
  pod.close()
  expect(await textOf(stream)).toBe('one two')
  expect(errors).toEqual(['oops'])
  expect(await stream.exitCode).toBe(77)
})

it('says nothing about a process whose stream broke', async () => {
  const { stream, pod } = await open()
  pod.terminate()
  expect(await textOf(stream)).toBe('')
  expect(await stream.exitCode).toBeNull()
})

it('sends large input in parts, and closes the input alone', async () => {
  const { stream, pod, say } = await open()
  const received: Buffer[] = []
  pod.on('message', (data: Buffer) => received.push(data))
  const content = Buffer.alloc(MB, 'x')
  stream.end(content)
  await expect.poll(() => received.at(-1)).toEqual(Buffer.of(255, 0))
  const input = received.slice(0, -1)
  expect(Math.max(...input.map(({ length }) => length))).toBeLessThanOrEqual(64 * 1024 + 1)
  expect(Buffer.concat(input.map((part) => part.subarray(1))).equals(content)).toBe(true)
  say(1, 'after the end of the input')
  pod.close()
  expect(await textOf(stream)).toBe('after the end of the input')
})

// Checked: if the socket is not paused, all 64 MB are read at once.
it('stops reading while nobody takes the output', async () => {
  const { stream, pod, say } = await open()
  for (let n = 0; n < 64; n++) say(1, Buffer.alloc(MB, n))
  stream.read(0)
  await expect.poll(() => stream.readableLength).toBeGreaterThan(0)
  // As much as the kernel holds may have left the other end, and no more.
  const held = async () => {
    const before = pod.bufferedAmount
    await new Promise((resolve) => setImmediate(resolve))
    return pod.bufferedAmount === before && before > 0
  }
  await expect.poll(held).toBe(true)
  expect(stream.readableLength).toBeLessThan(4 * MB)
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes === 64 * MB) break
  }
  expect(bytes).toBe(64 * MB)
})

it('gives a slow reader all that was sent before the end, also if the writer goes on', async () => {
  const { stream, pod, say } = await open()
  stream.on('error', () => {})
  for (let n = 0; n < 300; n++) say(1, `${n}\n`)
  pod.close()
  stream.read(0)
  // The end has arrived, and nobody has read anything yet.
  await expect.poll(() => stream.isPodGone).toBe(true)
  stream.write('into the void')
  let text = ''
  for await (const chunk of stream) {
    text += chunk
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(text.split('\n').slice(-2)).toEqual(['299', ''])
  await expect.poll(() => stream.destroyed).toBe(true)
})

it('counts as lost when pings that were answered no longer are', async () => {
  const { stream, pod } = await open(5)
  const pinged = () => new Promise<void>((resolve) => pod.once('ping', () => resolve()))
  await pinged()
  await pinged()
  stream.resume()
  expect(stream.destroyed).toBe(false)
  // From now on, the other side reads nothing, as behind a load balancer that has forgotten the connection.
  pod.pause()
  await once(stream, 'close')
  expect(await stream.exitCode).toBeNull()
})

it('survives every text in place of a status', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.string(), fc.json()), async (text) => {
      const { stream, pod, say } = await open()
      say(3, text)
      pod.close()
      stream.resume()
      const code = await stream.exitCode
      expect(code === null || Number.isSafeInteger(code)).toBe(true)
    }),
    { numRuns: 50 }
  )
})
