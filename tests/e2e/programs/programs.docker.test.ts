/** A program of the model, with the real server, its real sandboxes and a real MCP server. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { child } from '../../../server/connections/connections.fixture.ts'
import { serve, stopServers } from '../../support/serve.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const SECRET = 'sk-not-in-the-program-5678'
const CODE = `const who = await tools.steady.echo({ message: 'someone@example.test' })
await tools.workspace.write_file({ path: 'who.txt', content: who })
await tools.steady.write({ message: (await tools.workspace.read_file({ path: 'who.txt' })).content })
const env = typeof process === 'undefined' ? 'none' : JSON.stringify(process.env)
;({ who, env })`

afterAll(stopServers)

it('waits for approval of its calls, survives kill -9, and makes each write once', async () => {
  const [dataDir, elsewhere] = [temporaryFolder(), temporaryFolder()]
  const count = join(elsewhere, 'count')
  const file = join(dataDir, 'mcp.json')
  const steady = child('steady', [count], { env: { TOKEN: SECRET }, approval: { echo: 'allow' } })
  writeFileSync(file, JSON.stringify({ mcpServers: { steady } }))
  const env = { MCP_CONFIG: file, CHAT_CODE: 'true' }
  const first = await serve(env, { dataDir })
  const before = first.connect('programs')
  const { token } = await before.ready()
  await before.ask('message', `use run_code ${JSON.stringify({ code: CODE })}`)
  const ofProgram = (name: string) => (card: Record<string, unknown>) =>
    card.name === name && card.program !== undefined
  const card = await before.wait('tool:approval_required', ofProgram('write_file'))
  expect(card).toMatchObject({ program: { n: 2, line: 2, sources: [{ path: 'content', tool: 'echo', n: 1 }] } })
  await first.kill9()

  const second = await serve(env, { dataDir })
  const after = second.connect('programs', { token: String(token) })
  await after.ready()
  await after.ask('tool:approval', { callId: card.callId, approved: true, hash: card.hash })
  const read = await after.wait('tool:approval_required', ofProgram('read_file'))
  await after.ask('tool:approval', { callId: read.callId, approved: true, hash: read.hash })
  const write = await after.wait('tool:approval_required', ofProgram('write'))
  expect(write).toMatchObject({ args: { message: 'someone@example.test' } })
  expect(existsSync(count)).toBe(false)
  await after.ask('tool:approval', { callId: write.callId, approved: true, hash: write.hash })
  const result = await after.wait('tool:result', ({ program }) => program !== undefined)
  expect(JSON.stringify(result.content)).toContain('someone@example.test')
  expect(JSON.stringify(result.content)).toContain('none')
  expect(JSON.stringify(after.seen)).not.toContain(SECRET)
  expect(readFileSync(count, 'utf8').trim().split('\n')).toEqual(['someone@example.test'])
  await second.stop()
})
