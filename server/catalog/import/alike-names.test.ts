import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { addServers, changeServer } from '../edit-registry.ts'
import { describeProblem, readRegistry } from '../registry.ts'
import { chooseNames } from './choose-names.ts'
import { planServers } from './plan-servers.ts'

const entry = (command: string) => ({ command })
const ALIKE = ['files', 'FILES', 'Files ', 'Ｆｉｌｅｓ']

function registryFile(): string {
  const file = join(temporaryFolder(), 'mcp.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { Files: entry('true'), mail: entry('true') } }))
  return file
}

// Each was seen failing: both servers were taken.
it('the registry leaves out a server whose name only capital letters tell from another one', () => {
  const text =
    '{\n"mcpServers": {\n"Files": {"command": "a"},\n"files": {"command": "b"},\n"mail": {"command": "c"}\n}\n}'
  const { servers, problems } = readRegistry(text, 'mcp.json')
  expect([...servers.keys()]).toEqual(['Files', 'mail'])
  expect(problems.map((problem) => describeProblem('mcp.json', problem))).toEqual([
    'mcp.json, line 4: server "files": its name is too like that of "Files": give one of them another name; this server is left out.'
  ])
})

it.each(ALIKE)('no server "%s" is added beside "Files", nor a server renamed to it', async (name) => {
  const file = registryFile()
  const before = readFileSync(file, 'utf8')
  const refused = expect.objectContaining({ code: 'server_exists' })
  await expect(addServers(file, { [name]: entry('b') })).rejects.toEqual(refused)
  await expect(changeServer(file, { from: 'mail', to: name }, (raw) => raw)).rejects.toEqual(refused)
  expect(readFileSync(file, 'utf8')).toBe(before)
})

it('nor are two at once', async () => {
  const both = { a: entry('b'), A: entry('c') }
  await expect(addServers(registryFile(), both)).rejects.toMatchObject({ code: 'server_exists' })
  const { raw, problems } = planServers(JSON.stringify({ mcpServers: both }), () => false)
  expect(Object.keys(raw)).toEqual(['a'])
  expect(problems).toMatchObject([{ server: 'A', fatal: true }])
})

it('a server can be renamed to its own name in other letters', async () => {
  const file = registryFile()
  await changeServer(file, { from: 'Files', to: 'files' }, (raw) => raw)
  expect([...readRegistry(readFileSync(file, 'utf8'), file).servers.keys()]).toEqual(['files', 'mail'])
})

it('an import leaves it out too', () => {
  const text = JSON.stringify({ mcpServers: { files: entry('b') } })
  const found = [...readRegistry(text, 'theirs').servers.values()].map((own) => {
    return { client: 'Cursor', file: 'theirs', name: own.name, entry: own, raw: entry('b'), notes: [] }
  })
  const { servers } = readRegistry(readFileSync(registryFile(), 'utf8'), 'mcp.json')
  const { fresh, problems } = chooseNames(found, servers)
  expect(fresh).toEqual([])
  expect(problems).toEqual([expect.stringContaining('server "files" is left out')])
})
