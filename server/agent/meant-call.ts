import { PROGRAMS, ROUTER } from '../../contract/own-sources.ts'
import type { OfferedTool } from '../calls/offered-tool.ts'
import { EXECUTE } from '../calls/router-tools.ts'
import { isRecord } from '../lib/is-record.ts'
import { didYouMean } from '../lib/near-names.ts'
import type { AssistantPart } from '../models/port.ts'
import { readArguments } from '../models/step/read-arguments.ts'

export interface MeantCall {
  tool: OfferedTool
  args: Record<string, unknown>
}

const MAX_NAME = 100
const MAX_SERVERS = 5

/**
 * The call that the model means, or why there is none. A call of `execute` is the call that it names, so that the policy, the card,
 * the approval and the audit log are about that tool. The model may also call a known tool that it was not offered.
 */
export function meantCall(
  part: Extract<AssistantPart, { type: 'tool-call' }>,
  tools: readonly OfferedTool[],
  known: readonly OfferedTool[]
): MeantCall | string {
  const hasName = ({ modelName }: OfferedTool) => modelName === part.name
  const tool = tools.find(hasName) ?? known.filter(isOfOthers).find(hasName)
  if (!tool) return `There is no tool named "${part.name.slice(0, MAX_NAME)}".`
  const args = readArguments(part.args || '{}').value
  if (!args) return 'The arguments must be a JSON object.'
  return tool.server === ROUTER && tool.name === EXECUTE ? innerCall(args, known.filter(isOfOthers)) : { tool, args }
}

function innerCall(
  { server, tool: name, params = {} }: Record<string, unknown>,
  known: readonly OfferedTool[]
): MeantCall | string {
  if (typeof name !== 'string' || name === '') return 'Give "server", "tool" and "params". "find_tool" returns them.'
  if (!isRecord(params)) return '"params" must be an object with the parameters of the tool.'
  const found = known.filter(
    (tool) => (server === undefined || tool.server === server) && (tool.name === name || tool.modelName === name)
  )
  const [tool, other] = found
  if (tool && !other) return { tool, args: params }
  const shown = JSON.stringify(name.slice(0, MAX_NAME))
  if (tool)
    return `Several servers have a tool ${shown}: ${found
      .slice(0, MAX_SERVERS)
      .map((each) => each.server)
      .join(', ')}. Give "server".`
  const hint = didYouMean(name, new Set(known.map((each) => each.name)))
  const where = typeof server === 'string' ? ` on the server ${JSON.stringify(server.slice(0, MAX_NAME))}` : ''
  return `There is no tool ${shown}${where}.${hint} Use "find_tool" to find it.`
}

function isOfOthers({ server }: OfferedTool): boolean {
  return server !== ROUTER && server !== PROGRAMS
}
