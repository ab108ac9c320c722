/**
 * Translates another client's entry into ours. Writes nothing. Invariant: everything that can't be translated is reported, either
 * as the reason why the server is left out or as a note. A server never gets a placeholder that its client would have replaced.
 */
import { isAbsolute, resolve } from 'node:path'
import { splitCommand } from '../../../contract/servers/servers.ts'
import { messageOf } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { EntryProblem } from '../entry-values.ts'
import { readEntry } from '../read-entry.ts'
import type { ServerEntry } from '../server-entry.ts'
import { translateFields } from './client-fields.ts'
import { describeForeign } from './foreign-placeholders.ts'
import type { ImportContext } from './import-context.ts'
import { unwrapBridge } from './remote-bridge.ts'
import { translatePlaceholders } from './translate-placeholders.ts'

export interface TranslatedEntry {
  raw: Record<string, unknown>
  entry: ServerEntry
  /** Differences from the client, and fields that are not imported; sentences without the full stop. */
  notes: string[]
}

/** Throws EntryProblem if the server can't be imported. */
export function translateEntry(name: string, theirs: unknown, line: number, context: ImportContext): TranslatedEntry {
  if (!isRecord(theirs)) throw new EntryProblem([], 'must be an object')
  const isBare = [theirs.command, theirs.url].every((value) => value === undefined)
  if (isBare && (theirs.source === 'extension' || theirs.settings !== undefined)) {
    throw new EntryProblem(
      [],
      'is run by an extension of the client, and its command is not in this file: add it with "servers add"'
    )
  }
  const own = context.client === 'Gemini CLI' ? bracedVariables(theirs) : theirs
  const bridge = unwrapBridge(own)
  const { raw: filled, left, notes } = translatePlaceholders(bridge?.raw ?? own, context)
  if (left.length > 0 || !isRecord(filled)) throw new EntryProblem([], describeForeign(left))
  const file = takeEnvFile(filled, context)
  const fields = translateFields(file.raw, context.client)
  const split = splitLine(fields.raw)
  const raw = inWorkspace(split.raw, context)
  return {
    raw: raw.raw,
    entry: readEntry(name, raw.raw, line),
    notes: [...(bridge?.notes ?? []), ...notes, ...file.notes, ...fields.notes, ...split.notes, ...raw.notes]
  }
}

/** `"command": "npx -y pkg"` names no program. */
function splitLine(raw: Record<string, unknown>): Changed {
  const { command, args = [] } = raw
  const split = typeof command === 'string' && Array.isArray(args) ? splitCommand(command) : null
  if (!split) return { raw, notes: [] }
  const words = split.args.map((arg) => JSON.stringify(arg)).join(', ')
  return {
    raw: { ...raw, command: split.command, args: [...split.args, ...(Array.isArray(args) ? args : [])] },
    notes: [`"command" was one line: it is now "${split.command}" with the arguments ${words}`]
  }
}

interface Changed {
  raw: Record<string, unknown>
  notes: string[]
}

/** Its variables become secrets, so that their values stay out of mcp.json. */
function takeEnvFile(raw: Record<string, unknown>, { envFileNames, workspace }: ImportContext): Changed {
  const { envFile, ...rest } = raw
  if (typeof envFile !== 'string' || envFile === '' || !envFileNames) return { raw, notes: [] }
  const known = isRecord(raw.env) ? raw.env : {}
  if (!isAbsolute(envFile) && workspace === undefined) return { raw, notes: [] }
  const file = resolve(workspace ?? '/', envFile)
  let names: string[]
  try {
    names = envFileNames(file).filter((name) => !Object.hasOwn(known, name))
  } catch (error) {
    const reason = messageOf(error).startsWith('ENOENT') ? 'is not there' : `can't be read (${messageOf(error)})`
    return { raw: rest, notes: [`"envFile" is not taken over: ${file} ${reason}`] }
  }
  const fit = names.filter((name) => /^[A-Za-z_][\w.-]*$/.test(name))
  const unfit = names.filter((name) => !fit.includes(name))
  const env = { ...Object.fromEntries(fit.map((name) => [name, `\${secret:${name}}`])), ...known }
  const what =
    fit.length === 1 ? `the secret ${fit[0]} with its value` : `the secrets ${fit.join(', ')} with their values`
  return {
    raw: { ...rest, env },
    notes: [
      ...(fit.length > 0 ? [`"envFile" is not read here: store ${what} from ${file}`] : []),
      ...(unfit.length > 0
        ? [`variables of "envFile" with unusable names are not taken over: ${unfit.join(', ')}`]
        : [])
    ]
  }
}

/**
 * The client starts a project's server in the project's folder. In another folder, its command line could find another file of the
 * same name.
 */
function inWorkspace(raw: Record<string, unknown>, { workspace }: ImportContext): Changed {
  const { cwd } = raw
  if (typeof cwd === 'string' && cwd !== '' && !isAbsolute(cwd)) {
    if (workspace !== undefined) return { raw: { ...raw, cwd: resolve(workspace, cwd) }, notes: [] }
    return { raw, notes: ['"cwd" is relative to where the gateway is started: better write an absolute path'] }
  }
  if (workspace === undefined || cwd !== undefined || raw.command === undefined) return { raw, notes: [] }
  return { raw: { ...raw, cwd: workspace }, notes: [`it is started in ${workspace}, as its client does`] }
}

/** Gemini CLI fills `$NAME` as it does `${NAME}`. */
function bracedVariables(raw: Record<string, unknown>): Record<string, unknown> {
  const braced = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, (_, name) => `\${${name}}`)
    if (Array.isArray(value)) return value.map(braced)
    return isRecord(value) ? bracedVariables(value) : value
  }
  return Object.fromEntries(Object.entries(raw).map(([key, value]) => [key, braced(value)]))
}
