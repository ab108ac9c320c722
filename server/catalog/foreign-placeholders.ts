import { AppError } from '../lib/errors.ts'
import type { ServerEntry } from './server-entry.ts'
import { foreignIn } from './translate-placeholders.ts'

/** In variables and headers, ours are filled before: what is left is another client's. */
const LEFT = /(?<!\$)\$\{(?!(?:secret|env):[A-Za-z_][A-Za-z0-9_.-]*\})[^${}]{1,200}\}/g

/** Throws when the entry has a placeholder that nobody fills here: sent as it is, it would be taken for the value. */
export function refuseForeignPlaceholders(entry: ServerEntry): void {
  const values = Object.values(entry.kind === 'local' ? entry.env : entry.headers)
  const inValues = values.flatMap((text) => [...text.matchAll(LEFT)].map(([whole]) => whole))
  const elsewhere =
    entry.kind === 'local'
      ? foreignIn(entry.command, [entry.command, ...entry.args, ...(entry.cwd === undefined ? [] : [entry.cwd])])
      : foreignIn(undefined, entry.url)
  const found = [...new Set([...inValues, ...elsewhere])]
  if (found.length === 0) return
  throw new AppError('invalid', 'placeholder_unknown', `The server "${entry.name}" ${describeForeign(found)}`, {
    details: { permanent: true }
  })
}

export function describeForeign(found: string[]): string {
  return `has ${found.join(', ')}, which nothing fills in here: put the value itself into mcp.json, or \${env:NAME} or \${secret:NAME} under "env" or "headers" ($\${…} there stands for \${…} as it is).`
}
