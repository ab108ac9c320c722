import type { ServerTarget, ShownValue } from '../../contract/servers.ts'
import { looksSecret } from './literal-secrets.ts'
import { isPlaceholder } from './placeholders.ts'
import type { ServerEntry } from './server-entry.ts'

/** The exact command or address, which a person must see before it is run. Placeholders are not filled. */
export function describeTarget(entry: ServerEntry): string {
  if (entry.kind === 'remote') return entry.url
  return [entry.command, ...entry.args]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word)))
    .join(' ')
}

/** Everything that decides what is run and whether it needs approval, without secret values. */
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
    enabled: entry.enabled,
    description: entry.description ?? null
  }
}

function showValues(values: Record<string, string>): ShownValue[] {
  return Object.entries(values).map(([name, value]) => {
    const placeholder = isPlaceholder(value) ? value : null
    return { name, placeholder, looksSecret: placeholder === null && looksSecret(name, value) }
  })
}
