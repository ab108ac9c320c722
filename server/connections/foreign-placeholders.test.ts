import { afterEach, describe, expect, it } from 'vitest'
import { textOf } from '../../tests/support/text-of.ts'
import { child, openTestConnections, type TestConnections } from './connections.fixture.ts'

const opened: TestConnections[] = []
afterEach(() => Promise.all(opened.splice(0).map((one) => one.close())))

const of = (text: string) => `\${${text}}`

describe('placeholders of other clients', () => {
  // Checked: without the check, the server gets the placeholder, or the address is called.
  it.each([
    ['a variable', child('steady', [], { env: { API_KEY: of('API_KEY') } })],
    ['a default', child('steady', [], { env: { API_KEY: `x-${of('API_KEY:-none')}` } })],
    ['a question', child('steady', [], { env: { API_KEY: of('input:api-key') } })],
    ['an argument', child('steady', [`--token=${of('API_KEY')}`])],
    ['a folder', child('steady', [], { cwd: of('workspaceFolder') })],
    ['a header', { url: 'http://127.0.0.1:1/mcp', headers: { Authorization: `Bearer ${of('TOKEN')}` } }],
    ['an address', { url: `http://127.0.0.1:1/${of('TOKEN')}/mcp` }]
  ])('are never sent unresolved: %s', async (_what, entry) => {
    const one = await openTestConnections({ x: entry })
    opened.push(one)
    await expect(one.call('x', 'echo', { message: 'hi' })).rejects.toMatchObject({
      code: 'placeholder_unknown',
      message: expect.stringMatching(/^The server "x" has .*\$\{.*\}, which nothing fills in here/)
    })
  })

  it("do not include a shell's own variables or escaped ones", async () => {
    const { command, args } = child('steady')
    const run = `exec ${[command, ...(args as string[])].map((word) => `'${word}'`).join(' ')} ${of('NOTHING')}`
    const env = { FORMAT: `$${of('time')} ${of('env:FROM_OUTSIDE')}`, PRICE: '$5' }
    const one = await openTestConnections({ x: { command: '/bin/sh', args: ['-c', run], env } })
    opened.push(one)
    const { result } = await one.call('x', 'env')
    expect(JSON.parse(textOf(result))).toMatchObject({ FORMAT: `${of('time')} outside-value`, PRICE: '$5' })
  })
})
