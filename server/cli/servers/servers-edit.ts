import { terminalLine } from '../../../contract/hidden-characters.ts'
import { maskedTarget } from '../../catalog/describe-target.ts'
import { addServers, removeServer as removeFrom, switchServer as switchIn } from '../../catalog/edit-registry.ts'
import { EntryProblem } from '../../catalog/entry-values.ts'
import { openGrants } from '../../catalog/grants.ts'
import { refuseForeignPlaceholders } from '../../catalog/import/foreign-placeholders.ts'
import { warnings } from '../../catalog/import/plan-servers.ts'
import { readEntry } from '../../catalog/read-entry.ts'
import { AppError } from '../../lib/errors.ts'
import { oneName, print, type ServersContext } from './servers-context.ts'

export async function addServer(context: ServersContext): Promise<number> {
  const { file, flags, rest } = context
  const name = oneName(context)
  const [command, ...args] = rest
  const raw = {
    ...(command === undefined ? {} : { command, args }),
    ...(flags.url === undefined ? {} : { url: flags.url }),
    ...pairs('env', 'env', flags.env),
    ...pairs('headers', 'header', flags.header),
    ...(flags.description === undefined ? {} : { description: flags.description })
  }
  const entry = checked(name, raw)
  refuseForeignPlaceholders(entry)
  for (const warning of warnings(entry)) process.stderr.write(`! ${terminalLine(warning)}\n`)
  await addServers(file, { [name]: raw })
  // The user typed the command, so it needs no confirmation.
  await openGrants(context.settings).accept([entry], context.registry.servers.values())
  print(context, { added: name, target: maskedTarget(entry), file }, [
    `Added "${name}" to ${file}: ${maskedTarget(entry)}`
  ])
  return 0
}

export async function removeServer(context: ServersContext): Promise<number> {
  const name = oneName(context)
  await removeFrom(context.file, name)
  print(context, { removed: name, file: context.file }, [`Removed "${name}" from ${context.file}.`])
  return 0
}

export async function switchServer(context: ServersContext, on: boolean): Promise<number> {
  const name = oneName(context)
  await switchIn(context.file, name, on)
  print(context, { server: name, enabled: on }, [`"${name}" is now ${on ? 'on' : 'off'}.`])
  return 0
}

function checked(name: string, raw: Record<string, unknown>) {
  try {
    return readEntry(name, raw, 0)
  } catch (error) {
    if (!(error instanceof EntryProblem)) throw error
    throw new AppError('invalid', 'usage', `The server "${name}" can't be added: ${error.sentence}.`)
  }
}

function colon(pair: string): string {
  return /^[\w-]+:/.test(pair) ? ', with "=" and not ":"' : ''
}

function pairs(key: string, flag: string, given: unknown): Record<string, Record<string, string>> {
  if (!Array.isArray(given)) return {}
  const entries = given.map((pair) => {
    const at = String(pair).indexOf('=')
    // The text is not shown: it may be a secret.
    if (at < 1) throw new AppError('invalid', 'usage', `--${flag} needs NAME=VALUE${colon(String(pair))}.`)
    return [String(pair).slice(0, at), String(pair).slice(at + 1)]
  })
  return { [key]: Object.fromEntries(entries) }
}
