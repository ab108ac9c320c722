import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { openCredentials } from './credentials.ts'
import { fillPlaceholders } from './placeholders.ts'

type Options = Omit<Parameters<typeof openCredentials>[0], 'ours'>
const openSecrets = (options: Options, ours: string[] = []) => openCredentials({ ...options, ours }).source()
const placeholder = (kind: string, name: string) => `\${${kind}:${name}}`

function fileWith(text: string, mode = 0o600): string {
  const file = join(temporaryFolder(), 'secrets')
  writeFileSync(file, text)
  chmodSync(file, mode)
  return file
}

describe('credentials', () => {
  it.each(['{"KEY":"from-file"}', 'KEY=from-file\n'])('come from the file, then from the environment (%j)', (text) => {
    const secrets = openSecrets({ file: fileWith(text), environment: { KEY: 'outside', OTHER: 'other' } })
    expect([secrets.secret('KEY'), secrets.secret('OTHER'), secrets.secret('toString')]).toEqual([
      'from-file',
      'other',
      undefined
    ])
    expect(secrets.env('KEY')).toBe('outside')
  })

  // Checked: if any mode is accepted, the file is used.
  it.each([0o644, 0o640, 0o604])('are refused from a file that others can read (%o)', (mode) => {
    expect(() => openSecrets({ file: fileWith('KEY=x', mode), environment: {} })).toThrow(/chmod 600/)
  })

  it.each([
    ["A='it's a $x'", 1],
    ["A=1\n# fine\nB='one\ntwo'\nC='open", 5],
    ['A="a" b', 1],
    ['A=1\nno name', 2]
  ])('are refused from a file with a line that would be cut or skipped (%j)', (text, line) => {
    expect(() => openSecrets({ file: fileWith(text), environment: {} })).toThrow(
      new RegExp(`can't be used: line ${line} is not NAME='value'`)
    )
  })

  it.each([
    ["A='x # y'  # note", 'x # y'],
    ['export A="a\nb"\n\n', 'a\nb'],
    ["  A = it's \r\n", "it's"],
    ['B=\nA=`"\'`', '"\'']
  ])('are read from every line that the platform reads whole (%j)', (text, value) => {
    expect(openSecrets({ file: fileWith(text), environment: {} }).secret('A')).toBe(value)
  })

  // Checked: if the names are not compared, the server gets the access token.
  it('do not include our own secret settings, unless someone stored a value for servers', () => {
    const environment = { AUTH_TOKEN: 'ours-1', OPENAI_API_KEY: 'ours-2' }
    const source = openSecrets({ file: fileWith('OPENAI_API_KEY=theirs'), environment }, Object.keys(environment))
    for (const text of [placeholder('env', 'AUTH_TOKEN'), placeholder('secret', 'AUTH_TOKEN')])
      expect(() => fillPlaceholders('s', { KEY: text }, source)).toThrow(
        /does not get \$\{\w+:AUTH_TOKEN\}.*secret setting/
      )
    expect(() => fillPlaceholders('s', { KEY: placeholder('env', 'OPENAI_API_KEY') }, source)).toThrow(/servers secret/)
    const { values } = fillPlaceholders('s', { KEY: placeholder('secret', 'OPENAI_API_KEY') }, source)
    expect(values).toEqual({ KEY: 'theirs' })
  })

  it('never appear in an error about the file', () => {
    const file = fileWith('{"KEY": "hunter2"')
    expect(() => openSecrets({ file, environment: {} })).toThrow(/no valid JSON/)
    expect(() => openSecrets({ file, environment: {} })).not.toThrow(/hunter2/)
    expect(() => openSecrets({ file: '/nowhere/secrets', environment: {} })).toThrow(
      /credentials file \/nowhere\/secrets can't be used/
    )
  })

  it.each([
    ['env', 'hush\0hush'],
    ['headers', 'hush\nhush'],
    ['headers', 'hush\u{1f600}hush']
  ] as const)('that %s can not carry (%j) are refused without being shown', (place, value) => {
    const source = { secret: () => value, env: () => undefined }
    const fill = () => fillPlaceholders('a', { KEY: `Bearer \${secret:T}` }, source, place)
    expect(fill).toThrow(
      /^The server "a" needs \$\{secret:T\}, whose value has a character that (a variable|a header) can't have/
    )
    expect(fill).not.toThrow(/hush/)
  })

  it('fill placeholders anywhere in a text, and are remembered as secrets', () => {
    const source = openSecrets({ file: fileWith('A=one\nB=$&two'), environment: { HOME: '/home/x' } })
    const filled = fillPlaceholders(
      's',
      {
        H: `Bearer ${placeholder('secret', 'A')}:${placeholder('secret', 'B')}`,
        P: placeholder('env', 'HOME'),
        N: 'plain'
      },
      source
    )
    expect(filled.values).toEqual({ H: 'Bearer one:$&two', P: '/home/x', N: 'plain' })
    expect(filled.secrets).toEqual(['one', '$&two', '/home/x'])
  })
})
