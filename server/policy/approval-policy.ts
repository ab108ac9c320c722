import type { ApprovalRule } from '../../contract/servers/approval-rule.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'

export interface PolicyRule {
  /**
   * If set, the rule applies to this server only and `glob` matches tool names. A separate field, because a server's name may
   * contain `/` and `*`.
   */
  server?: string
  /** `server/tool`, where `*` matches any characters. */
  glob: string
  rule: ApprovalRule
}

export type ApprovalPolicy = (server: string, tool: string) => ApprovalRule

/** The most specific match wins: most literal characters, then fewest `*`, then the stricter rule. Without a match the rule is `ask`. */
export function createPolicy(rules: PolicyRule[]): ApprovalPolicy {
  const strictness = { deny: 0, ask: 1, allow: 2 }
  const ordered = rules
    .toSorted((a, b) => {
      const specific = literals(b) - literals(a) || a.glob.length - b.glob.length
      return specific || strictness[a.rule] - strictness[b.rule]
    })
    .map((policyRule) => ({ matches: ruleMatcher(policyRule), rule: policyRule.rule }))
  return (server, tool) => ordered.find(({ matches }) => matches(server, tool))?.rule ?? 'ask'
}

/** The rules in mcp.json. */
export function rulesOf(servers: Iterable<ServerEntry>): PolicyRule[] {
  return [...servers].flatMap(({ name, approval }) =>
    Object.entries(approval).map(([glob, rule]) => ({ server: name, glob, rule }))
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

/** Written by hand: servers choose the tool names, and a regular expression with many `.*` is very slow on a long one. */
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
