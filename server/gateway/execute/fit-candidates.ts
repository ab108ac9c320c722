/**
 * Weighs the router's matches by how well the values of the sentence fit them: a tool that has a place for every value and misses
 * none is more likely than one that can't use them.
 */
import type { RouteMatch } from '../../routing/port.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { checkParams } from '../params/check-params.ts'
import { fillParams } from '../params/fill-params.ts'
import { unusedValues } from '../params/unused-values.ts'

/** How likely the right tool is to miss a required parameter, or to leave a value unused. */
const MISSING = 0.3
const UNUSED = 0.15
/** The tools that are not among the matches: some fit, some don't. */
const OTHERS = 0.5

/** Tools of one server are mistaken for each other more easily than tools of two servers. */
const SAME_SERVER = 0.15

/** The matches with their confidences given the values, best first. Without values, no confidence grows. */
export function fitCandidates(
  { index }: Pick<GatewayServices, 'index'>,
  request: string,
  given: Record<string, unknown>,
  matches: RouteMatch[]
): RouteMatch[] {
  const weighed = matches.map((match) => {
    const { server, tool: name } = match
    const prior = priorOf(match, matches)
    const tool = index.tool(server, name)
    if (tool === undefined) return { match, weight: prior * OTHERS, hasValues: false }
    const { params } = fillParams({ ...tool, server }, given, request)
    const isMissing = checkParams(tool.inputSchema, params).length > 0
    const isUnused = unusedValues({ request, server, tool, params }) !== undefined
    const weight = prior * (isMissing ? MISSING : 1) * (isUnused ? UNUSED : 1)
    return { match, weight, hasValues: Object.keys(params).length > 0 }
  })
  const rest = Math.max(0, 1 - matches.reduce((sum, { confidence }) => sum + confidence, 0)) * OTHERS
  const all = weighed.reduce((sum, { weight }) => sum + weight, rest)
  if (all === 0) return matches
  return weighed
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ match, weight, hasValues }) => {
      const confidence = weight / all
      return { ...match, confidence: hasValues ? confidence : Math.min(confidence, match.confidence) }
    })
}

function priorOf({ server, confidence }: RouteMatch, matches: RouteMatch[]): number {
  const own = matches.filter((match) => match.server === server).reduce((sum, match) => sum + match.confidence, 0)
  return (1 - SAME_SERVER) * confidence + SAME_SERVER * own
}
