/** Measures how often the right tool is first for a labelled request: by the router alone, and weighed by the values. */
import { fitCandidates } from '../../server/gateway/execute/fit-candidates.ts'
import type { GatewayServices } from '../../server/gateway/gateway-services.ts'
import type { RouteMatch } from '../../server/routing/port.ts'
import { createRouter } from '../../server/routing/router.ts'
import { parameterText } from '../../server/tools/parameter-text.ts'
import { calibrationError, chanceError } from '../calibration.ts'
import { halfOf } from '../routing-data.ts'
import { round } from '../statistics.ts'
import { type LabelledRequest, type LabelledSentence, type RecordedTool, readLines } from './eight-servers.ts'

const CANDIDATES = 10

export function fitFigures(): object {
  const tools = readLines<RecordedTool>('tools')
  const router = createRouter()
  for (const [server, own] of Map.groupBy(tools, (tool) => tool.server)) {
    const routable = own.map(({ name, description, inputSchema }) => ({
      ...{ server, name, description, params: parameterText(inputSchema) }
    }))
    router.setServer(server, routable)
  }
  const find = (server: string, name: string) => tools.find((tool) => tool.server === server && tool.name === name)
  const core = { index: { tool: find } } as unknown as GatewayServices
  const requests = [
    ...readLines<LabelledRequest>('requests').map(({ request, ...call }) => ({ request, right: [call] })),
    ...readLines<LabelledSentence>('sentences').flatMap(({ request, reads, may }) =>
      reads ? [{ request, right: may }] : []
    )
  ]
  const judge = (weigh: (request: string, matches: RouteMatch[]) => RouteMatch[]) => {
    const answers = requests.map(({ request, right }) => {
      const [best] = weigh(request, router.find(request, { limit: CANDIDATES }).matches)
      const first = right.some(({ server, tool }) => server === best?.server && tool === best.tool)
      return { half: halfOf(request), confidence: best?.confidence ?? 0, first }
    })
    const figures = (half: 0 | 1) => {
      const some = answers.filter((answer) => answer.half === half)
      return {
        requests: some.length,
        first: round((100 * some.filter(({ first }) => first).length) / some.length),
        calibrationError: round(calibrationError(some)),
        calibrationErrorByChance: round(chanceError(some))
      }
    }
    return { tuned: figures(0), heldOut: figures(1) }
  }
  return {
    byWords: judge((_, matches) => matches),
    withValues: judge((request, matches) => fitCandidates(core, request, {}, matches))
  }
}
