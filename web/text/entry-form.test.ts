import fc from 'fast-check'
import { expect, it } from 'vitest'
import { entryFrom, formOf } from './entry-form.ts'
import { emptyAddition, entryOf } from './server-form.ts'

const local = {
  command: 'npx',
  args: ['-y', 'pkg', ''],
  env: { KEY: null, N: 7 },
  disabled: true,
  timeoutMs: 4000,
  sandbox: { network: ['a.example'], memoryMb: 64 },
  autoApprove: ['x']
}

it('gives back every entry exactly as it was if nothing is changed', () => {
  const keys = fc.constantFrom(
    ...Object.keys(local),
    'url',
    'serverUrl',
    'headers',
    'enabled',
    'cwd',
    'keywords',
    'type'
  )
  fc.assert(
    fc.property(fc.dictionary(keys, fc.jsonValue()), (entry) => {
      expect(entryFrom(formOf('a', entry), entry)).toEqual(entry)
    })
  )
  expect(entryFrom(formOf('a', local), local)).toEqual(local)
})

it('changes what was changed and leaves the rest; arguments that no line can hold stay whole', () => {
  const form = formOf('a', local)
  form.isEnabled = true
  form.args = form.args.replace('pkg', 'two\\nlines')
  form.callMs = '9000'
  form.network = ''
  form.values = [...form.values, { name: ' MODE ', value: 'x' }, { name: '', value: 'lost' }]
  expect(entryFrom(form, local)).toEqual({
    command: 'npx',
    args: ['-y', 'two\nlines', ''],
    env: { KEY: null, N: '7', MODE: 'x' },
    timeoutMs: { start: 4000, list: 4000, call: 9000 },
    sandbox: { memoryMb: 64 },
    autoApprove: ['x']
  })
})

it('makes a local server remote and back, without keys of the other kind', () => {
  const form = formOf('a', { ...local, type: 'stdio', description: 'd' })
  const remote = entryFrom({ ...form, kind: 'remote', url: ' https://example.org/mcp ', values: [] }, local)
  expect(remote).toEqual({
    url: 'https://example.org/mcp',
    disabled: true,
    timeoutMs: 4000,
    autoApprove: ['x'],
    description: 'd'
  })
  const sse = { serverUrl: 'https://example.org/sse', type: 'sse' }
  expect(entryFrom({ ...formOf('a', sse), url: 'https://example.org/two' }, sse)).toEqual({
    url: 'https://example.org/two',
    type: 'sse'
  })
  expect(entryFrom({ ...formOf('a', sse), kind: 'local', command: 'x' }, sse)).toEqual({ command: 'x' })
})

it.each([
  ['npx -y pkg', 'npx', ['-y', 'pkg', 'last']],
  [` node "a b.js" --x='1 2' `, 'node', ['a b.js', '--x=1 2', 'last']],
  ['npx', 'npx', ['last']],
  // A path may contain blanks, and what only a shell could run stays as it was entered.
  ['/opt/my tools/run', '/opt/my tools/run', ['last']],
  ['npx pkg | tee log', 'npx pkg | tee log', ['last']],
  ['npx "open', 'npx "open', ['last']]
])('splits the command line %j that was entered in one field', (entered, command, args) => {
  const { form } = emptyAddition()
  expect(entryOf({ ...form, command: entered, args: 'last' })).toEqual({ command, args })
})
