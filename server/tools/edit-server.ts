/**
 * Changes an entry of the registry for an administrator. Invariants: what is saved was shown before, word for word; a hidden value never
 * leaves this process, and is kept only for the program and address that it was entered for; an entry that has changed meanwhile is not
 * overwritten.
 */
import { createHmac } from 'node:crypto'
import type { ChangeRule, EditServer, EntryDraft } from '../../contract/servers/entry-edits.ts'
import type { PlanReply } from '../../contract/servers/servers.ts'
import { showTarget } from '../catalog/describe-target.ts'
import { changeServer, type RawEntry, rawServer } from '../catalog/edit-registry.ts'
import { EntryProblem } from '../catalog/entry-values.ts'
import type { Grants } from '../catalog/grants.ts'
import { secretsInUse, takeSecretsOut } from '../catalog/import/move-secrets.ts'
import { warnings } from '../catalog/import/plan-servers.ts'
import { readEntry, unknownKeys } from '../catalog/read-entry.ts'
import type { Registry } from '../catalog/registry.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'
import { decidesPlace, shownValue } from '../catalog/shown-value.ts'
import { storeSecrets } from '../catalog/store-secrets.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { AppError } from '../lib/errors.ts'
import { isRecord } from '../lib/is-record.ts'
import { alikeName } from '../lib/near-names.ts'
import { type KeyValueStore, sharedSecret } from '../storage/key-value-store.ts'

export interface EditDeps {
  file: string
  credentialsFile?: string | undefined
  keyValues: Pick<KeyValueStore, 'get' | 'add'>
  grants: Pick<Grants, 'accept'>
  registry(): Registry
  reload(): Promise<void>
}

const VALUE_KEYS = ['env', 'headers']
/** Keys that decide which program or address gets the values. */
const PLACE_KEYS = ['command', 'args', 'cwd', 'sandbox', 'url', 'serverUrl', 'type', 'transport']
const MAX_CHARS = 200_000

export async function draftOf(deps: EditDeps, name: string): Promise<EntryDraft> {
  const raw = rawServer(deps.file, name)
  if (JSON.stringify(raw).length > MAX_CHARS) {
    const message = `The entry of "${name}" is too large to be edited here: edit ${deps.file}.`
    throw new AppError('invalid', 'entry_too_large', message)
  }
  const hide = ([key, value]: [string, unknown]) => [key, isHidden(key, value) ? null : value]
  const entry = mapValues(raw, (values) => Object.fromEntries(Object.entries(values).map(hide)))
  return { version: sign(await planKey(deps), ['version', name, raw]), entry }
}

/** Without the right `confirm` it only returns what would be saved. */
export async function editServer(
  deps: EditDeps,
  from: string,
  request: EditServer
): Promise<PlanReply | { saved: string }> {
  const { file, credentialsFile, grants, registry, reload } = deps
  const { name: to, version, confirm } = request
  const key = await planKey(deps)
  const checkVersion = (raw: RawEntry) => {
    if (version !== sign(key, ['version', from, raw])) throw changedMeanwhile(from)
  }
  const current = rawServer(file, from)
  checkVersion(current)
  const wanted = withKept(request.entry, current)
  const canMove = credentialsFile !== undefined && request.moveSecrets === true
  const moved = canMove ? takeSecretsOut({ [to]: wanted }, secretsInUse(registry().servers.values(), from)) : undefined
  const raw = moved?.servers[to] ?? wanted
  const secrets = moved?.secrets ?? new Map<string, string>()
  const entry = validated(to, raw)
  const others = [...registry().servers.keys()].filter((name) => name !== from)
  if (to !== from && alikeName(others, to) !== undefined) throw nameTaken(to)
  const hash = sign(key, ['edit', from, to, version, raw, [...secrets]])
  if (confirm === undefined) {
    const problems = unknownKeys(raw).map((unknown) => {
      return {
        server: to,
        line: registry().servers.get(from)?.line ?? 1,
        reason: `unknown key "${unknown}"`,
        fatal: false
      }
    })
    const planned = { ...showTarget(entry), warnings: warnings(entry) }
    return { confirm: hash, servers: [planned], problems, canMoveSecrets: credentialsFile !== undefined }
  }
  if (confirm !== hash) {
    const message = 'The entry to save has changed since it was shown. Review it again, then confirm.'
    throw new AppError('conflict', 'confirmation_stale', message)
  }
  if (credentialsFile && secrets.size > 0) await storeSecrets(credentialsFile, secrets)
  await changeServer(file, { from, to }, (now) => {
    checkVersion(now)
    return raw
  })
  await grants.accept([entry], registry().servers.values())
  await reload()
  return { saved: to }
}

/** Sets the rule for one tool by its full name, and whether the entry says that it only reads. */
export async function changeToolRule(deps: EditDeps, server: string, change: ChangeRule): Promise<void> {
  const { tool, before, after } = change
  if (tool.includes('*')) {
    const message = `"${tool}" contains "*", so a rule for it would match other tools too.`
    throw new AppError('invalid', 'invalid_request', message)
  }
  await changeServer(deps.file, { from: server, to: server }, (raw) => {
    const approval = isRecord(raw.approval) ? raw.approval : {}
    const readOnly = Array.isArray(raw.readOnly) ? raw.readOnly : []
    const now = {
      rule: Object.hasOwn(approval, tool) ? approval[tool] : null,
      isReadOnly: readOnly.includes(tool)
    }
    if (now.rule !== before.rule || now.isReadOnly !== before.isReadOnly) throw changedMeanwhile(server)
    const { [tool]: _, ...otherRules } = approval
    const others = readOnly.filter((name) => name !== tool)
    const changed = {
      ...raw,
      approval: after.rule === null ? otherRules : { ...approval, [tool]: after.rule },
      readOnly: after.isReadOnly ? (now.isReadOnly ? readOnly : [...others, tool]) : others
    }
    validated(server, changed)
    return withoutEmpty(changed)
  })
  await deps.reload()
}

function withoutEmpty({ approval, readOnly, ...others }: RawEntry): RawEntry {
  const hasRules = isRecord(approval) && Object.keys(approval).length > 0
  const hasReaders = Array.isArray(readOnly) && readOnly.length > 0
  return { ...others, ...(hasRules ? { approval } : {}), ...(hasReaders ? { readOnly } : {}) }
}

/** Values that the page does not show elsewhere either. */
function isHidden(name: string, value: unknown): boolean {
  if (typeof value !== 'string') return false
  const { looksSecret, value: shown } = shownValue(name, value)
  return looksSecret && shown !== value
}

function withKept(wanted: RawEntry, current: RawEntry): RawEntry {
  const isElsewhere = canonicalJson(placeOf(wanted, current)) !== canonicalJson(placeOf(current, current))
  return mapValues(wanted, (values, key) => {
    const before = isRecord(current[key]) ? current[key] : {}
    const kept = Object.entries(values).map(([name, value]) => {
      if (value !== null) return [name, value]
      if (isElsewhere) throw enterAgain(name)

      if (Object.hasOwn(before, name)) return [name, before[name]]
      const message = `Enter the value of "${name}": a hidden value is kept only under the name that it had.`
      throw new AppError('invalid', 'invalid_request', message)
    })
    return Object.fromEntries(kept)
  })
}

function placeOf(raw: RawEntry, current: RawEntry): unknown {
  const values = VALUE_KEYS.flatMap((key) => {
    const before = isRecord(current[key]) ? current[key] : {}
    const given = isRecord(raw[key]) ? Object.entries(raw[key]) : []
    return given
      .map(([name, value]) => [key, name, value ?? before[name] ?? null] as const)
      .filter(([, name, value]) => decidesPlace(name, value))
  })
  return [PLACE_KEYS.map((key) => raw[key] ?? null), values]
}

function enterAgain(name: string): AppError {
  const message = `Enter the value of "${name}" again: another command, argument, folder, sandbox or address would get the hidden value. Or move it into the credentials file first, with nothing else changed.`
  return new AppError('invalid', 'invalid_request', message)
}

function mapValues(raw: RawEntry, map: (values: RawEntry, key: string) => RawEntry): RawEntry {
  const entries = Object.entries(raw).map(([key, value]) => {
    return [key, VALUE_KEYS.includes(key) && isRecord(value) ? map(value, key) : value]
  })
  return Object.fromEntries(entries)
}

function validated(name: string, raw: RawEntry): ServerEntry {
  try {
    return readEntry(name, raw, 0)
  } catch (error) {
    if (!(error instanceof EntryProblem)) throw error
    throw new AppError('invalid', 'invalid_request', `The entry can't be used: ${error.sentence}.`)
  }
}

/** A key that the page never sees, so that nobody can find out a hidden value by trying which one has this signature. */
export function planKey({ keyValues }: EditDeps): Promise<string> {
  return sharedSecret(keyValues, 'server-plans')
}

export function sign(key: string, content: unknown): string {
  return createHmac('sha256', key).update(canonicalJson(content)).digest('base64url')
}

function changedMeanwhile(name: string): AppError {
  const message = `The entry of "${name}" has changed since it was shown, so nothing was saved. Open it again to see what it is now.`
  return new AppError('conflict', 'edit_conflict', message)
}

function nameTaken(name: string): AppError {
  return new AppError('conflict', 'server_exists', `There is a server "${name}" already: choose another name.`)
}
