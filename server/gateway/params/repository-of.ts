import type { Literal } from '../../routing/words/literals.ts'

/** `owner/name`, also as the address of a repository. */
export function repositoryOf({ kind, text }: Literal): { owner: string; repo: string } | undefined {
  const pattern =
    kind === 'url'
      ? /^https?:\/\/(?:www\.)?git(?:hub|lab)\.com\/([\w.-]+)\/([\w.-]+?)(?:\.git)?(?:$|[/?#])/
      : /^([\w.-]+)\/([\w.-]+)$/
  if (kind !== 'repo' && kind !== 'url') return undefined
  const [, owner, repo] = pattern.exec(text) ?? []
  return owner !== undefined && repo !== undefined ? { owner, repo } : undefined
}
