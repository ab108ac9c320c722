import type { ServerTarget, ShownValue } from '../../contract/servers/servers.ts'
import { maskUrl, maskWord } from './literal-secrets.ts'
import type { ServerEntry } from './server-entry.ts'
import { shownValue } from './shown-value.ts'

/** The exact command or address, which a person must see before it is run. Control characters are escapes; placeholders are not filled. */
export function describeTarget(entry: ServerEntry): string {
  if (entry.kind === 'remote') return escapeControls(entry.url)
  return [entry.command, ...entry.args]
    .map((word) => (/^[\w@%+=:,./•-]+$/.test(word) ? word : escapeControls(JSON.stringify(word))))
    .join(' ')
}

/** Those that JSON leaves as they are. A terminal, or what cleans text for one, could drop a part of the text between them. */
function escapeControls(text: string): string {
  return text.replace(/[\x7f-\x9f]/g, (control) => `\\u00${control.charCodeAt(0).toString(16)}`)
}

/** The same with secrets masked, for lists. Not for a person who decides about the entry: a mask could hide what is run. */
export function maskedTarget(entry: ServerEntry): string {
  return describeTarget(
    entry.kind === 'remote' ? { ...entry, url: maskUrl(entry.url) } : { ...entry, args: entry.args.map(maskWord) }
  )
}

/** Everything that decides what is run and whether approval is needed, with secrets masked. */
export function showTarget(entry: ServerEntry): ServerTarget & { target: string } {
  const local = entry.kind === 'local' ? entry : undefined
  return {
    name: entry.name,
    kind: entry.kind,
    target: describeTarget(entry),
    cwd: local?.cwd ?? null,
    env: showValues(local?.env ?? {}),
    headers: showValues(entry.kind === 'remote' ? entry.headers : {}),
    sandbox: local?.sandbox
      ? {
          image: local.sandbox.image ?? null,
          network: local.sandbox.network?.join(', ') || 'none',
          folders: local.sandbox.folders ?? []
        }
      : null,
    approval: entry.approval,
    readOnly: entry.readOnly,
    alternatives: entry.alternatives,
    enabled: entry.enabled,
    description: entry.description ?? null
  }
}

function showValues(values: Record<string, string>): ShownValue[] {
  return Object.entries(values).map(([name, value]) => shownValue(name, value))
}
