/**
 * The resources and prompts of a server, for an administrator who looks at them in the page. Invariant: reading one is recorded in the
 * audit log first, rules that deny it apply, and everything that the server says is bounded and without the secrets that it was given.
 */
import type {
  OfferedPrompt,
  OfferedResource,
  OffersReply,
  PromptReply,
  ResourceReply
} from '../../contract/servers/offers.ts'
import type { Audit } from '../audit/audit.ts'
import { CallProgress, callFailed, callReturned } from '../audit/call-end.ts'
import { boundContent } from '../calls/bound-content.ts'
import type { Connections } from '../connections/connections.ts'
import { AppError, messageOf } from '../lib/errors.ts'
import { isRecord } from '../lib/is-record.ts'
import type { ApprovalPolicy } from '../policy/approval-policy.ts'
import { callerOf, redactFromServer, type Trying } from './try-tool.ts'

export interface OfferDeps {
  connections: Pick<Connections, 'list' | 'request' | 'connection' | 'chatLane'>
  /** The chat's rules. */
  policy: ApprovalPolicy
  audit: Pick<Audit, 'begin'>
}

const MAX_PAGES = 10
const MAX_ITEMS = 500
const MAX_MESSAGES = 100
const MAX_TEXT = 2000

/** Starts the server if necessary. A list that fails does not hide the others. */
export async function listOffers(deps: OfferDeps, looking: Trying): Promise<OffersReply> {
  const { server, signal } = looking
  const caller = callerOf(deps, looking)
  await deps.connections.list(server, { caller, signal })
  const { resources, prompts } = deps.connections.connection(server, caller).live?.capabilities ?? {}
  const problems: string[] = []
  const list = async (has: unknown, method: string, key: string): Promise<Record<string, unknown>[]> => {
    if (!has || deps.policy(server, method) === 'deny') return []
    return pages(deps, looking, method, key).catch((error) => {
      problems.push(`${method}: ${messageOf(error)}`)
      return []
    })
  }
  const [plain, templates, offered] = await Promise.all([
    list(resources, 'resources/list', 'resources'),
    list(resources, 'resources/templates/list', 'resourceTemplates'),
    list(prompts, 'prompts/list', 'prompts')
  ])
  const found = [...plain.map((item) => resourceOf(item, false)), ...templates.map((item) => resourceOf(item, true))]
  return { resources: found.filter(({ uri }) => uri !== ''), prompts: offered.map(promptOf), problems }
}

export async function readResource(deps: OfferDeps, looking: Trying, uri: string): Promise<ResourceReply> {
  const { contents } = await recorded(deps, looking, 'resources/read', { uri })
  return { content: boundContent((Array.isArray(contents) ? contents : []).map(asBlock)) }
}

export async function getPrompt(
  deps: OfferDeps,
  looking: Trying,
  prompt: { name: string; arguments: Record<string, string> }
): Promise<PromptReply> {
  const { description, messages } = await recorded(deps, looking, 'prompts/get', prompt)
  const said = (Array.isArray(messages) ? messages : []).slice(0, MAX_MESSAGES).map((message) => {
    const { role, content } = isRecord(message) ? message : {}
    const parts = (Array.isArray(content) ? content : [content]).map(asBlock)
    return { role: role === 'assistant' ? 'assistant' : 'user', content: parts }
  })
  // One bound for all of them.
  const bounded = boundContent(said.flatMap(({ content }) => content))
  let at = 0
  const kept = said.map(({ role, content }) => {
    const from = at
    at += content.length
    return { role, content: bounded.slice(from, at) }
  })
  return { description: text(description), messages: kept.filter(({ content }) => content.length > 0) }
}

async function recorded(
  deps: OfferDeps,
  looking: Trying,
  method: string,
  params: Record<string, unknown>
): Promise<Record<string, unknown>> {
  const { server, signal } = looking
  if (deps.policy(server, method) === 'deny')
    throw new AppError('forbidden', 'denied_by_policy', `The policy in mcp.json does not allow ${server}/${method}.`)
  const caller = callerOf(deps, looking)
  const end = deps.audit.begin({ caller, server, tool: method, args: params })
  const progress = new CallProgress()
  try {
    progress.sending()
    const result = await deps.connections.request(server, { caller, method, params, signal })
    end({ ...callReturned({ isError: false }), calledMs: progress.calledMs })
    return redactFromServer(deps, looking, result)
  } catch (error) {
    end({ ...callFailed(error, progress.stage), calledMs: progress.calledMs })
    throw error
  }
}

async function pages(
  { connections, ...deps }: OfferDeps,
  looking: Trying,
  method: string,
  key: string
): Promise<Record<string, unknown>[]> {
  const { server, signal } = looking
  const caller = callerOf({ connections, ...deps }, looking)
  const items: Record<string, unknown>[] = []
  let params: Record<string, unknown> = {}
  for (let page = 0; page < MAX_PAGES && items.length < MAX_ITEMS; page++) {
    const { [key]: found, nextCursor } = await connections.request(server, { caller, method, params, signal })
    items.push(...(Array.isArray(found) ? found.filter(isRecord) : []))
    if (typeof nextCursor !== 'string') break
    params = { cursor: nextCursor }
  }
  return redactFromServer({ connections }, looking, items.slice(0, MAX_ITEMS))
}

function resourceOf(item: Record<string, unknown>, isTemplate: boolean): OfferedResource {
  const uri = isTemplate ? item.uriTemplate : item.uri
  return {
    uri: typeof uri === 'string' && uri.length <= 4000 ? uri : '',
    isTemplate,
    name: text(item.title ?? item.name, 200),
    description: text(item.description),
    mimeType: typeof item.mimeType === 'string' ? text(item.mimeType, 100) : null
  }
}

function promptOf(item: Record<string, unknown>): OfferedPrompt {
  const list = Array.isArray(item.arguments) ? item.arguments.filter(isRecord).slice(0, 50) : []
  const args = list.map((each) => {
    return { name: text(each.name, 200), description: text(each.description), isRequired: each.required === true }
  })
  return { name: text(item.name, 200), description: text(item.description), arguments: args }
}

/** A resource, alone or inside a message, in the form of a tool's content. */
function asBlock(part: unknown): unknown {
  const resource = isRecord(part) && part.type === 'resource' && isRecord(part.resource) ? part.resource : part
  if (!isRecord(resource) || (resource !== part && resource.text === undefined && resource.blob === undefined))
    return part
  const { mimeType, text: words, blob, type } = resource
  if (type !== undefined) return part
  if (typeof words === 'string') return { type: 'text', text: words }
  if (typeof blob !== 'string') return part
  if (/^image\//.test(String(mimeType))) return { type: 'image', mimeType, data: blob }
  const bytes = Math.floor((blob.length * 3) / 4)
  return { type: 'text', text: `[${text(mimeType, 100) || 'binary'}, ${bytes} bytes]` }
}

function text(value: unknown, max = MAX_TEXT): string {
  return typeof value === 'string' ? value.slice(0, max).toWellFormed() : ''
}
