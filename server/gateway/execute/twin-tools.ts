/**
 * Two servers may offer the very same tool, such as "prod" and "staging". Which one is meant, only the caller can say: the order
 * of equal matches means nothing.
 */
import { wordsOf } from '../../policy/plain-reader.ts'
import type { RouteMatch } from '../../routing/port.ts'
import type { GatewayServices } from '../gateway-services.ts'

/** Whether another server among the matches has the same definition, and the request does not tell the two apart. */
export function hasTwin({ index }: GatewayServices, request: string, matches: RouteMatch[]): boolean {
  const [best, ...others] = matches
  const hash = best && index.tool(best.server, best.tool)?.hash
  if (best === undefined || hash === undefined) return false
  const said = new Set(wordsOf(request))
  return others.some(({ server, tool }) => {
    if (index.tool(server, tool)?.hash !== hash) return false
    // The user has declared that either will do.
    if (index.entry(best.server)?.alternatives.includes(server)) return false
    const [own, their] = [aboutServer({ index }, best.server), aboutServer({ index }, server)]
    return ![...own].some((word) => said.has(word) && !their.has(word))
  })
}

function aboutServer({ index }: Pick<GatewayServices, 'index'>, server: string): Set<string> {
  const { description = '', keywords = [] } = index.entry(server) ?? {}
  return new Set(wordsOf([server, description, ...keywords].join(' ')))
}
