export type Verdict = 'allow' | 'ask' | 'deny'

export interface PolicyRule {
  /** `server/tool`, where `*` stands for any run of characters. */
  glob: string
  verdict: Verdict
}

export type ApprovalPolicy = (server: string, tool: string) => Verdict

/** The most specific rule that fits wins (the longest glob; of equals, the stricter); nothing that fits means ask. */
export function createPolicy(rules: PolicyRule[]): ApprovalPolicy {
  const strictness = { deny: 0, ask: 1, allow: 2 }
  const ordered = rules
    .toSorted((a, b) => b.glob.length - a.glob.length || strictness[a.verdict] - strictness[b.verdict])
    .map(({ glob, verdict }) => ({ matches: globMatcher(glob), verdict }))
  return (server, tool) => ordered.find(({ matches }) => matches(`${server}/${tool}`))?.verdict ?? 'ask'
}

function globMatcher(glob: string): (text: string) => boolean {
  const pattern = glob.split('*').map((literal) => literal.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'))
  const regex = new RegExp(`^${pattern.join('.*')}$`, 's')
  return (text) => regex.test(text)
}
