import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { addServers, removeServer, switchServer } from './edit-registry.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

function fileWith(text: string): string {
  const folder = temporaryFolder()
  folders.push(folder)
  writeFileSync(join(folder, 'mcp.json'), text)
  return join(folder, 'mcp.json')
}

it('keeps comments, trailing commas, indentation and the order of everything else', async () => {
  const file = fileWith(`// Ours.
{
\t"other": [1, 2], // stays
\t"mcpServers": {
\t\t/* the first */
\t\t"a": { "command": "a", "disabled": true, },
\t\t"b": { "command": "b" }, // the last
\t},
}
`)
  await addServers(file, { c: { command: 'c', args: ['x'] }, __proto__x: { command: 'd' } })
  await switchServer(file, 'a', true)
  await switchServer(file, 'b', false)
  await removeServer(file, '__proto__x')
  expect(readFileSync(file, 'utf8')).toBe(`// Ours.
{
\t"other": [1, 2], // stays
\t"mcpServers": {
\t\t/* the first */
\t\t"a": {
\t\t\t"command": "a",
\t\t},
\t\t"b": {
\t\t\t"command": "b",
\t\t\t"enabled": false
\t\t}, // the last
\t\t"c": {
\t\t\t"command": "c",
\t\t\t"args": [
\t\t\t\t"x"
\t\t\t]
\t\t}
\t},
}
`)
})

it('adds, switches and removes servers of any name, and leaves the others unchanged', async () => {
  const entry = fc.record({
    command: fc.string({ minLength: 1, maxLength: 20 }),
    env: fc.dictionary(fc.stringMatching(/^[A-Z]{1,5}$/), fc.string())
  })
  const name = fc.stringMatching(/^[\w.-]{1,12}$/)
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(name, entry),
      name,
      entry,
      fc.constantFrom(0, 2, '\t'),
      async (others, added, raw, indent) => {
        const { [added]: _, ...mcpServers } = others
        const file = fileWith(JSON.stringify({ mcpServers, other: ['}'] }, null, indent))
        const saved = () => JSON.parse(readFileSync(file, 'utf8'))
        await addServers(file, { [added]: raw })
        expect(saved()).toEqual({ mcpServers: { ...mcpServers, [added]: raw }, other: ['}'] })
        await switchServer(file, added, false)
        expect(saved().mcpServers[added]).toEqual({ ...raw, enabled: false })
        await removeServer(file, added)
        expect(saved()).toEqual({ mcpServers, other: ['}'] })
      }
    ),
    { numRuns: 40 }
  )
})

it.each(['{}', '{"mcpServers":{}}', '\uFEFF{\r\n  "servers": {}\r\n}\r\n'])(
  'adds a first server to %j',
  async (text) => {
    const file = fileWith(text)
    await addServers(file, JSON.parse('{"__proto__": {"command": "x"}}'))
    const saved = JSON.parse(readFileSync(file, 'utf8'))
    expect(JSON.stringify(saved.servers ?? saved.mcpServers)).toBe('{"__proto__":{"command":"x"}}')
  }
)

it('explains what to check if the file can not be written', async () => {
  // Not even root can create files there.
  const adding = addServers('/proc/mcp.json', { x: { command: 'true' } })
  await expect(adding).rejects.toMatchObject({ code: 'file_unwritable', kind: 'unavailable' })
  await expect(adding).rejects.toThrow(/^\/proc\/mcp\.json can't be changed \(.*\): check its permissions/)
})
