import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { isPlaceholder, secretNames } from '../../catalog/placeholders.ts'
import { setSecret } from '../../catalog/store-secrets.ts'
import { userCredentials } from '../../config/user-folders.ts'
import { showName } from '../../gateway/asking/show-as-data.ts'
import { AppError } from '../../lib/errors.ts'
import { usageError } from '../usage-error.ts'
import { print, type ServersContext } from './servers-context.ts'

const MAX_BYTES = 64 * 1024

/** Stores the value of `${secret:NAME}` in the credentials file, and never prints it. */
export async function storeSecret(context: ServersContext): Promise<number> {
  const { names, registry, settings } = context
  const [name = ''] = names
  if (names.length !== 1) throw usageError('Name one secret. See mcp-orchestrator servers --help.')
  if (!isPlaceholder(`\${secret:${name}}`))
    throw usageError('The name of a secret has letters, digits, _, . and -, and begins with a letter or _.')
  if (name === 'owners') throw usageError('A secret can\'t be called "owners", which has another meaning in that file.')
  const value = (process.stdin.isTTY ? await askHidden(`${name}: `) : await readInput()).replace(/\r?\n$/, '')
  if (value.trim() === '') throw usageError('The value is empty: nothing was stored.')
  const file = resolve(settings.CREDENTIALS_FILE ?? userCredentials(process.env))
  await setSecret(file, name, value)
  const usedBy = [...registry.servers.values()]
    .filter((entry) => secretNames(entry.kind === 'local' ? entry.env : entry.headers).includes(name))
    .map((entry) => entry.name)
  print(context, { stored: name, file, usedBy }, [
    `Stored ${name} in ${file}.`,
    usedBy.length > 0
      ? `It is for ${usedBy.map(showName).join(', ')}.`
      : `No server in ${context.file} uses \${secret:${name}} yet.`,
    ...(settings.CREDENTIALS_FILE === undefined
      ? ['A gateway that is already running uses this file after a restart.']
      : [])
  ])
  return 0
}

/** Asks at the terminal and shows nothing of what is typed. */
function askHidden(question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true, historySize: 0 })
  // Only now: the interface has switched the terminal's own echo off.
  process.stderr.write(question)
  return new Promise<string>((done, fail) => {
    terminal.once('line', done)
    terminal.once('close', () => fail(new AppError('cancelled', 'not_confirmed', 'Nothing was stored.')))
  }).finally(() => {
    terminal.close()
    process.stderr.write('\n')
  })
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin) {
    size += chunk.length
    if (size > MAX_BYTES) throw usageError(`The value is longer than ${MAX_BYTES / 1024} kB.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
