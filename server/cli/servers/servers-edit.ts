import { terminalLine } from '../../../contract/hidden-characters.ts'
import { maskedTarget } from '../../catalog/describe-target.ts'
import { addServers, removeServer as removeFrom, switchServer as switchIn } from '../../catalog/edit-registry.ts'
import { EntryProblem } from '../../catalog/entry-values.ts'
import { openGrants } from '../../catalog/grants.ts'
import { refuseForeignPlaceholders } from '../../catalog/import/foreign-placeholders.ts'
import { planServers, warnings } from '../../catalog/import/plan-servers.ts'
import { readEntry } from '../../catalog/read-entry.ts'
import type { ServerEntry } from '../../catalog/server-entry.ts'
import { alikeName } from '../../lib/near-names.ts'
import { usageError } from '../usage-error.ts'
import { oneName, print, type ServersContext } from './servers-context.ts'
import { describeMissing, missingOf, testCommand } from './servers-missing.ts'

export async function addServer(context: ServersContext): Promise<number> {
  const { file, flags, rest } = context
  const name = oneName(context)
  if (name.trimStart().startsWith('{')) return addPasted(context, name)
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
  await add(context, [entry], { [name]: raw })
  print(context, { added: name, target: maskedTarget(entry), file }, [
    `Added "${name}" to ${file}: ${maskedTarget(entry)}`,
    ...whatIsNext(context, [entry])
  ])
  return 0
}

/** Entries as the docs of a server or another client show them, with or without "mcpServers" around them. */
async function addPasted(context: ServersContext, text: string): Promise<number> {
  const { file, flags, rest } = context
  const other = [...Object.keys(flags).filter((flag) => flag !== 'json'), ...rest][0]
  if (other !== undefined) throw usageError('JSON has the whole entry: give nothing else with it.')
  const { raw, problems } = planServers(text, (name) => alikeName(context.registry.servers.keys(), name) !== undefined)
  const fatal = problems.filter((problem) => problem.fatal)
  const names = Object.keys(raw)
  if (fatal.length > 0 || names.length === 0) {
    const reasons = fatal.map(({ server, reason }) => `"${server}": ${reason}.`).join(' ')
    throw usageError(`Nothing was added. ${reasons || 'The JSON has no server.'}`)
  }
  for (const { server, reason } of problems) process.stderr.write(`! ${terminalLine(`"${server}": ${reason}`)}\n`)
  const entries = names.map((name) => checked(name, raw[name] ?? {}))
  for (const entry of entries) refuseForeignPlaceholders(entry)
  for (const warning of entries.flatMap(warnings)) process.stderr.write(`! ${terminalLine(warning)}\n`)
  await add(context, entries, raw)
  const targets = Object.fromEntries(entries.map((entry) => [entry.name, maskedTarget(entry)]))
  print(context, { added: targets, file }, [
    ...Object.entries(targets).map(([name, target]) => `Added "${name}" to ${file}: ${target}`),
    ...whatIsNext(context, entries)
  ])
  return 0
}

/** The user typed the commands, so they need no confirmation. */
async function add(
  { file, settings, registry }: ServersContext,
  entries: ServerEntry[],
  raw: Record<string, Record<string, unknown>>
): Promise<void> {
  await addServers(file, raw)
  await openGrants(settings).accept(entries, registry.servers.values())
}

function whatIsNext(context: ServersContext, entries: ServerEntry[]): string[] {
  const names = entries.map(({ name }) => name)
  return [
    ...describeMissing(missingOf(entries, context), context.settings.CREDENTIALS_FILE),
    `Test it: ${testCommand(names, context.file)}`
  ]
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
    throw usageError(`The server "${name}" can't be added: ${error.sentence}.`)
  }
}

function pairs(key: string, flag: string, given: unknown): Record<string, Record<string, string>> {
  if (!Array.isArray(given)) return {}
  const entries = given.map((pair) => {
    const text = String(pair)
    // Clients and curl write headers as "NAME: VALUE".
    const [, header, value] = (flag === 'header' && /^([\w-]+):\s*(.*)$/s.exec(text)) || []
    if (header !== undefined && value !== undefined) return [header, value]
    const at = text.indexOf('=')
    // The text is not shown: it may be a secret.
    if (at < 1) throw usageError(`--${flag} needs NAME=VALUE${flag === 'header' ? ' or "NAME: VALUE"' : ''}.`)
    return [text.slice(0, at), text.slice(at + 1)]
  })
  return { [key]: Object.fromEntries(entries) }
}
