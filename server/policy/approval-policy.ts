import type { ServerEntry } from '../catalog/server-entry.ts'

export type Verdict = 'allow' | 'ask' | 'deny'

export interface PolicyRule {
  /** Whose tools it is about, and `glob` is of their names then. Apart, because a server's name may have `/` and `*` in it. */
  server?: string
  /** `server/tool`, where `*` stands for any run of characters. */
  glob: string
  verdict: Verdict
}

export type ApprovalPolicy = (server: string, tool: string) => Verdict

/** The most specific rule that fits wins (most characters that are no `*`, then fewest `*`, then the stricter); none means ask. */
export function createPolicy(rules: PolicyRule[]): ApprovalPolicy {
  const strictness = { deny: 0, ask: 1, allow: 2 }
  const ordered = rules
    .toSorted((a, b) => {
      const specific = literals(b) - literals(a) || a.glob.length - b.glob.length
      return specific || strictness[a.verdict] - strictness[b.verdict]
    })
    .map((rule) => ({ matches: ruleMatcher(rule), verdict: rule.verdict }))
  return (server, tool) => ordered.find(({ matches }) => matches(server, tool))?.verdict ?? 'ask'
}

/** The rules in mcp.json. */
export function rulesOf(servers: Iterable<ServerEntry>): PolicyRule[] {
  return [...servers].flatMap(({ name, approval }) =>
    Object.entries(approval).map(([glob, verdict]) => ({ server: name, glob, verdict }))
  )
}

function literals({ server, glob }: PolicyRule): number {
  return (server === undefined ? 0 : server.length + 1) + glob.replaceAll('*', '').length
}

function ruleMatcher({ server: only, glob }: PolicyRule): (server: string, tool: string) => boolean {
  const matches = globMatcher(glob)
  if (only === undefined) return (server, tool) => matches(`${server}/${tool}`)
  return (server, tool) => server === only && matches(tool)
}

/** By hand: a regular expression made of many `.*` takes for ever on a long name, and names are the server's to choose. */
export function globMatcher(glob: string): (text: string) => boolean {
  const [head = '', ...rest] = glob.split('*')
  const tail = rest.pop()
  if (tail === undefined) return (text) => text === head
  return (text) => {
    if (!text.startsWith(head)) return false
    let at = head.length
    for (const literal of rest) {
      const found = text.indexOf(literal, at)
      if (found < 0) return false
      at = found + literal.length
    }
    return text.length - tail.length >= at && text.endsWith(tail)
  }
}
