import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'

/** The promise is 30 s; a machine under load may notice the end of the process later. */
const DEADLINE_MS = 40_000
const sockets: Socket[] = []

afterAll(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await stopServers()
})

async function raw(port: number): Promise<{ socket: Socket; received: () => string }> {
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return { socket, received: () => text }
}

/** Signals the server; resolves to its exit code, or fails when it does not end in time. */
async function end(server: Served, signal: NodeJS.Signals): Promise<number | null> {
  const exited = once(server.child, 'exit')
  server.child.kill(signal)
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`still there after ${DEADLINE_MS} ms: ${server.log()}`)), DEADLINE_MS)
  const [code] = await Promise.race([exited, late]).finally(() => clearTimeout(timer))
  return code
}

/** The last line of its log, once it has ended. */
async function lastLine(server: Served): Promise<Record<string, unknown>> {
  await eventually('its last line', () => /"msg":"(Stopped|Not stopped)/.test(server.log()))
  return JSON.parse(server.log().trim().split('\n').at(-1) ?? '')
}

/** Asks over one keep-alive connection again and again, as a load balancer or a page does; opens a new one when it is closed. */
function poll(port: number) {
  const statuses: number[] = []
  let stopped = false
  const loop = async () => {
    while (!stopped) {
      const { socket, received } = await raw(port).catch(() => ({ socket: undefined, received: () => '' }))
      if (!socket) return
      while (!socket.destroyed && !stopped) {
        const from = received().length
        socket.write('GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n')
        await eventually('an answer', () => socket.destroyed || stopped || /ok":\w+/.test(received().slice(from)))
        const status = /HTTP\/1\.1 (\d+)/.exec(received().slice(from))?.[1]
        if (status) statuses.push(Number(status))
        if (/connection: close/i.test(received().slice(from))) socket.destroy()
      }
    }
  }
  const done = loop().catch(() => {})
  return {
    statuses,
    async stop() {
      stopped = true
      await done
    }
  }
}

/** The engine behind a socket of our own, which can stop answering without closing anything. */
async function silentableEngine() {
  const dir = temporaryFolder()
  const path = join(dir, 'docker.sock')
  const pairs: Socket[] = []
  let isSilent = false
  const server = createServer((client) => {
    const engine = connect('/var/run/docker.sock')
    pairs.push(client, engine)
    for (const socket of [client, engine]) socket.on('error', () => {})
    if (isSilent) return
    client.pipe(engine).pipe(client)
  }).listen(path)
  await once(server, 'listening')
  return {
    env: { DOCKER_HOST: `unix://${path}` },
    silence() {
      isSilent = true
      for (const socket of pairs) socket.unpipe().pause()
    },
    close() {
      server.close()
      for (const socket of pairs) socket.destroy()
      discard(dir)
    }
  }
}

// Each test has its own server, and most of the time they wait.
describe.concurrent('shutdown', () => {
  it('ends in time while requests hang, a client polls, a page is open and a file is on its way; what was sent is kept', async () => {
    const server = await serve({ WARM_POOL_SIZE: '1' })
    const sessionId = `test-${randomUUID()}`
    const client = server.connect(sessionId)
    const { token } = await client.ready()
    await client.sh('echo kept > a.txt')
    const hanging = await raw(server.port)
    hanging.socket.write(
      'POST /api/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{'
    )
    const upload = await raw(server.port)
    const body = 'x'.repeat(100_000)
    const path = `/api/sessions/${sessionId}/file?path=up.txt`
    upload.socket.write(
      `PUT ${path} HTTP/1.1\r\nhost: localhost\r\nx-session-token: ${token}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 50_000)}`
    )
    const poller = poll(server.port)
    await eventually('the client polls', () => poller.statuses.includes(200))

    const ended = end(server, 'SIGTERM')
    await eventually('not ready any more', () => poller.statuses.at(-1) === 503)
    upload.socket.write(body.slice(50_000))
    expect(await ended).toBe(0)
    const instance = /"instance":"([^"]+)".*"msg":"Stopping/.exec(server.log())?.[1]
    const seconds = expect.any(Number)
    expect(instance).toBeTruthy()
    expect(await lastLine(server)).toMatchObject({ msg: 'Stopped.', instance, seconds, saved: 1, unsaved: [] })
    await poller.stop()
    expect(poller.statuses.join(' ')).toMatch(/^(200 )+503( 503)*$/)
    expect(upload.received()).toMatch(/^HTTP\/1\.1 204/)
    expect(client.all('disconnect')).toHaveLength(1)

    const next = await serve({}, { dataDir: server.dataDir })
    const again = next.connect(sessionId, { token })
    await again.ready()
    expect(await again.sh('cat a.txt; wc -c up.txt')).toMatch(/kept\s+100000 up.txt/)
  })

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'on %s during a command says that the server did that, not a person, and does not run it again',
    async (signal) => {
      const server = await serve()
      const sessionId = `test-${randomUUID()}`
      const client = server.connect(sessionId)
      const { token } = await client.ready()
      const [card] = await client.cards('run echo begun >> a.txt; echo begun; sleep 600')
      await client.ask('tool:approval', { callId: card?.callId, approved: true })
      await client.wait('tool:output', ({ text }) => String(text).includes('begun'))
      await end(server, signal)
      const next = await serve({}, { dataDir: server.dataDir })
      const again = next.connect(sessionId, { token })
      await again.wait('session:snapshot', ({ state }) => state !== undefined)
      await eventually('the turn has gone on', async () =>
        (await next.events(sessionId)).some(({ type }) => type === 'turn:end')
      )
      const events = await next.events(sessionId)
      const results = events.filter(({ type }) => type === 'tool:result').map(({ data }) => data)
      const text = expect.stringMatching(/server .*restarted.*may have run in part/)
      // A server that is killed can't record what the command had written.
      const output = signal === 'SIGTERM' ? [{ text: 'begun\n' }] : []
      expect(results).toMatchObject([{ outcome: 'unknown', interruptedBy: 'server', content: [...output, { text }] }])
      expect(events.find(({ type }) => type === 'turn:end')?.data.reason).toBe('done')
      expect(await again.sh('cat a.txt')).toMatch(/^begun\n(?!begun)/)
    }
  )

  it('ends on SIGHUP as on SIGTERM, and leaves no container', async () => {
    const server = await serve({ WARM_POOL_SIZE: '2' })
    expect(await end(server, 'SIGHUP')).toBe(0)
    await eventually('it says so', () => server.log().includes('Stopping'))
  })

  it.each([
    ['in time', [], /Changes since the last finished call may not be saved in: test-/],
    ['sooner after a second signal', ['SIGTERM'], /a second signal asked to hurry.*may not be saved in: test-/]
  ] as const)('ends %s when the engine never answers, and says what is not saved', async (_when, more, sentence) => {
    const engine = await silentableEngine()
    const server = await serve(engine.env)
    const sessionId = `test-${randomUUID()}`
    const client = server.connect(sessionId)
    await client.sh('echo kept > a.txt')
    engine.silence()
    const ended = end(server, 'SIGTERM')
    await eventually('it stops', () => server.log().includes('Stopping'))
    for (const signal of more) {
      // Signals that come together are one Ctrl-C, told twice: only a later one counts.
      await eventually('it hurries', () => server.child.kill(signal) && server.log().includes('Hurrying'))
    }
    expect(await ended).toBe(1)
    await eventually('it says what is not saved', () => sentence.test(server.log()))
    expect(await lastLine(server)).toMatchObject({ saved: 0, unsaved: [sessionId] })
    engine.close()
  })
})
