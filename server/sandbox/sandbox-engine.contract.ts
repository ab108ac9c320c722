/** The contract that every sandbox engine must pass, with real containers. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { SandboxEngine, SandboxOwner, WorkspaceConnection } from './port.ts'

const lost = { code: 'connection_lost', kind: 'unavailable' }
/** Command lines of all processes in the container. */
const PROCESSES = `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null; echo; done`

export interface CommandOutcome {
  exitCode: number | null
  signal: string | null
  stdout: string
  stderr: string
}

export interface TestSandboxes {
  engine: SandboxEngine
  owner: SandboxOwner
  /** A new sandbox with a connection to it. */
  open(epoch?: number): Promise<{ id: string; connection: WorkspaceConnection }>
  removeAll(): Promise<void>
}

export async function run(
  connection: WorkspaceConnection,
  command: string,
  timeoutMs = 30_000
): Promise<CommandOutcome> {
  const result = await connection.callTool('execute_command', { command }, { timeoutMs })
  if (result.isError) throw new Error(`execute_command failed: ${JSON.stringify(result.content)}`)
  const { exitCode, signal, stdout, stderr } = result.structuredContent ?? {}
  return {
    exitCode: typeof exitCode === 'number' ? exitCode : null,
    signal: typeof signal === 'string' ? signal : null,
    stdout: String(stdout),
    stderr: String(stderr)
  }
}

export function describeSandboxEngine(name: string, prepare: () => Promise<TestSandboxes>): void {
  describe(`sandbox engine: ${name}`, () => {
    let sandboxes: TestSandboxes
    let engine: SandboxEngine
    beforeAll(async () => {
      sandboxes = await prepare()
      engine = sandboxes.engine
      await engine.ensureImage()
    })
    afterAll(() => sandboxes.removeAll())

    it('is created, used, listed and removed', async () => {
      const { id, connection } = await sandboxes.open()
      const tools = await connection.listTools()
      expect(tools.map(({ name }) => name).sort()).toEqual(['execute_command', 'list_files', 'read_file', 'write_file'])
      expect(await run(connection, 'echo hello; exit 3')).toMatchObject({ exitCode: 3, stdout: 'hello\n' })
      await connection.ping()
      const listed = { id, instance: 'test', createdAt: expect.any(Number) }
      expect(await engine.list(sandboxes.owner.deployment)).toContainEqual(listed)
      await engine.remove(id)
      await connection.closed
      expect(await engine.inspect(id)).toBeNull()
      expect((await engine.list(sandboxes.owner.deployment)).map((each) => each.id)).not.toContain(id)
      await engine.remove(id)
      await expect(engine.connect(id, 2)).rejects.toMatchObject({ code: 'container_gone' })
      await expect(connection.ping()).rejects.toMatchObject({ ...lost, details: { sent: false } })
    })

    it('gives live output, and stops a command that is cancelled or takes too long', async () => {
      const { id, connection } = await sandboxes.open()
      const seen: string[] = []
      const controller = new AbortController()
      const call = connection.callTool(
        'execute_command',
        { command: 'echo début; sleep 321' },
        { timeoutMs: 30_000, signal: controller.signal, onOutput: ({ text }) => seen.push(text) }
      )
      call.catch(() => {})
      await vi.waitFor(() => expect(seen.join('')).toBe('début\n'))
      controller.abort()
      await expect(call).rejects.toMatchObject({ code: 'cancelled' })
      const slow = connection.callTool('execute_command', { command: 'sleep 322' }, { timeoutMs: 300 })
      await expect(slow).rejects.toMatchObject({ code: 'call_timeout' })
      await vi.waitFor(async () => expect((await run(connection, PROCESSES)).stdout).not.toMatch(/sleep 32/))
      await engine.remove(id)
    })

    // With relay processes between command and server, the output of a command is empty on a busy machine.
    it('loses none of what a command says while others take the processor, and gives real pipes', async () => {
      const { id, connection } = await sandboxes.open()
      await run(connection, 'for i in $(seq 60); do (while :; do :; done) & done; seq 20000 > numbers')
      const answers: CommandOutcome[] = []
      for (let call = 0; call < 3; call += 1) answers.push(await run(connection, 'cat numbers; echo end > /dev/stderr'))
      for (const { exitCode, stdout, stderr } of answers) {
        expect({ exitCode, stderr, length: stdout.length }).toEqual({ exitCode: 0, stderr: 'end\n', length: 108_894 })
      }
      await engine.remove(id)
    })

    // A server that these commands find by its name, and that obeys their signals, loses the connection.
    it.each(['pkill -f node', 'pkill -9 -f server'])(
      'outlives a command that ends its own processes by %s',
      async (kill) => {
        const { id, connection } = await sandboxes.open()
        await run(connection, 'node -e "setInterval(() => {}, 1000)" server >/dev/null 2>&1 &')
        expect(await run(connection, kill)).toMatchObject({ exitCode: 0 })
        await vi.waitFor(async () => expect((await run(connection, PROCESSES)).stdout).not.toMatch(/setInterval/))
        await engine.remove(id)
      }
    )

    it('is taken over by a higher epoch, with nothing of the old owner left, and never by a lower one', async () => {
      const { id, connection: first } = await sandboxes.open(5)
      await run(first, 'echo kept > file; (setsid sleep 311 >/dev/null 2>&1 &); (nohup sleep 312 >/dev/null 2>&1 &)')
      const running = run(first, 'sleep 313')
      const ended = expect(running).rejects.toMatchObject(lost)
      const second = await engine.connect(id, 6)
      await first.closed
      await ended
      expect(first.isOpen).toBe(false)
      const { stdout } = await run(second, PROCESSES)
      expect(stdout).not.toMatch(/sleep 31/)
      expect(stdout).toMatch(/sandbox --epoch 6/)
      expect(stdout).not.toMatch(/--epoch 5/)
      await expect(engine.connect(id, 5)).rejects.toMatchObject({ code: 'stale_epoch', kind: 'conflict' })
      expect((await run(second, 'cat file')).stdout).toBe('kept\n')
      await engine.remove(id)
    })

    it('is claimed in place, upwards only', async () => {
      const { id, connection } = await sandboxes.open(0)
      await connection.claim(7)
      await expect(connection.claim(6)).rejects.toMatchObject({ code: 'stale_epoch' })
      await expect(engine.connect(id, 6)).rejects.toMatchObject({ code: 'stale_epoch' })
      await connection.ping()
      await engine.remove(id)
    })

    it('comes back with the same epoch and files after its server was killed', async () => {
      const { id, connection } = await sandboxes.open(3)
      await run(connection, 'echo kept > file')
      await expect(run(connection, 'kill -9 $PPID; sleep 300')).rejects.toMatchObject(lost)
      await connection.closed
      const again = await engine.connect(id, 3)
      const { stdout } = await run(again, `cat file; ${PROCESSES}`)
      expect(stdout).toMatch(/^kept\n/)
      expect(stdout).not.toContain('sleep 300')
      await engine.remove(id)
    })

    it('carries megabytes both ways', async () => {
      const { id, connection } = await sandboxes.open()
      const content = 'é'.repeat(1_500_000)
      const written = await connection.callTool('write_file', { path: 'big', content }, { timeoutMs: 30_000 })
      expect(written.isError ?? false).toBe(false)
      const parts: Buffer[] = []
      for (let offset = 0, eof = false; !eof; offset += parts.at(-1)?.length ?? 0) {
        const part = await connection.fetch({ path: 'big', offset, length: 1_000_000 })
        parts.push(Buffer.from(part.data, 'base64'))
        eof = part.eof
      }
      expect(Buffer.concat(parts).equals(Buffer.from(content))).toBe(true)
      await engine.remove(id)
    })
  })
}
