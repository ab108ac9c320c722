/**
 * Decides whether a tool that was found for a sentence may run. Invariant: if nobody named the tool, it runs only if it reads and
 * the sentence plainly asks for it; anything else is confirmed first.
 */
import type { StoredTool } from '../../catalog/stored-tools.ts'
import { wordSet } from '../../lib/word-set.ts'
import { wordsOf } from '../../policy/plain-reader.ts'
import { isAcceptedReader } from '../../policy/tool-effects.ts'
import { STOP_WORDS, WEAK_WORDS } from '../../routing/words/stop-words.ts'
import { relatedTerms, SAME_WEIGHT } from '../../routing/words/synonyms.ts'
import { termOf } from '../../routing/words/words.ts'
import { parameterText } from '../../tools/parameter-text.ts'
import { showAsData } from '../asking/show-as-data.ts'
import type { CallContext } from '../asking/tool-request.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { unknownNames } from '../params/check-params.ts'
import { hasValues, type ResolvedParams } from '../params/resolve-params.ts'
import { unusedValues } from '../params/unused-values.ts'
import { doubtAbout, doubtAboutReading, withoutValues } from './doubtful-sentence.ts'
import { doubtAboutFilling, doubtAboutRunning } from './plain-order.ts'
import { isAsking } from './sentence-form.ts'

/** Maximum length that a person can still read in a client's dialog. */
const MAX_SHOWN = 10_000
/** Below this, no value of the sentence is sent to a server that nobody named. */
const SURE_ENOUGH = 0.6
/** Enough for one of several tools of a server, if that server is certain. */
const SURE_BESIDE = 0.45
const MAX_NAMED = 5
/** The shortest name that can stand for a longer word. */
const SHORT = 3
const MAX_NAME = 60

export interface FoundTool extends ResolvedParams {
  server: string
  tool: StoredTool
  confidence: number
  /** That any tool of this server is meant. */
  serverConfidence?: number
  request: string
  /** The caller named the server, but not the tool. */
  isServerNamed: boolean
  /** Whether the tool only reads: see `reads`. */
  isRead: boolean
  /** Only past choices lead to it. */
  isLearned?: boolean
}

export function reads({ index, approvals }: GatewayServices, server: string, tool: StoredTool): Promise<boolean> {
  return isAcceptedReader(approvals?.definitions, server, index.entry(server), index.tools(server) ?? [], tool)
}

/** All reasons why the tool must not run for this sentence alone; undefined if it may. */
export function whyConfirm(core: GatewayServices, found: FoundTool): string | undefined {
  const { server, tool, request, isRead } = found
  const isChanged = core.approvals?.definitions.isChanged(server, tool.name) === true
  const reasons = joined([
    isRead ? doubtAboutReading(request, tool) : doubtAbout(request),
    isRead ? undefined : 'This tool is not known to only read.',
    isRead || !isChanged ? undefined : 'Its definition has changed, and nobody has accepted the change.',
    found.isLearned ? 'Past choices lead to this tool, but the words of this request alone do not.' : undefined,
    unknownParams(found),
    unusedValues(found),
    unclearEnds(found),
    unsure(found)
  ])
  return reasons ?? (isRead ? offTopic(found, core.enrichment !== undefined) : undefined)
}

/** Why a named tool must not take its values from this sentence; undefined if it may, or takes none. A tool that reads must use all. */
export function whyNotFill(
  { request, tool, isRead, filledBy, matched = [], ...found }: Omit<FoundTool, 'confidence' | 'isServerNamed'>,
  given: Record<string, unknown> | undefined
): string | undefined {
  if (given !== undefined && filledBy === undefined) return undefined
  const unused = unusedValues({ ...found, request, tool }, !isRead && filledBy !== undefined)
  const unclear = unclearEnds(found)
  if (isRead) return joined([unused, unclear])
  const doubt = filledBy ? doubtAboutFilling(request, tool) : doubtAboutRunning(request, tool)
  const guessed = matched.map((name) => JSON.stringify(name.slice(0, MAX_NAME))).slice(0, MAX_NAMED)
  const guess =
    guessed.length > 0
      ? `Check ${guessed.join(', ')}: the request has the value, but not the name of the parameter.`
      : undefined
  return joined([doubt, guess, unused, unclear])
}

function joined(all: (string | undefined)[]): string | undefined {
  const reasons = all.filter((reason) => reason !== undefined)
  return reasons.length > 0 ? reasons.join(' ') : undefined
}

/** Values that were not taken, because nobody can say where they end. */
export function unclearEnds({ unclear = [] }: Pick<ResolvedParams, 'unclear'>): string | undefined {
  const [first] = unclear
  if (first === undefined) return undefined
  const names = unclear.slice(0, MAX_NAMED).map((name) => JSON.stringify(name.slice(0, MAX_NAME)))
  return `It is not clear where the value of ${names.join(', ')} ends: put it into quotation marks, or give it in "params".`
}

function unsure({ confidence, serverConfidence = confidence, ...found }: FoundTool): string | undefined {
  const isSure = confidence >= SURE_ENOUGH || (confidence >= SURE_BESIDE && serverConfidence >= SURE_ENOUGH)
  if (isSure || found.isServerNamed || !hasValues(found)) return undefined
  return `A confidence of ${confidence} is too low to send values to this server.`
}

/** "I hate the knowledge graph" asks for nothing; "I need it" does. */
const REMARK =
  /^\s*(?:i|we|they|he|she)\s+(?:(?:really|just|also|do|don['’]?t)\s+)?(?!(?:want|need|wish|would|like|love|hope|have|am|was|must|should|can|could|may|might|will|wonder|forgot|lost|seek|require|ask|plan)\b)[a-z]+\s+(?:the|my|your|our|this|that|these|those|all|it|a|an)\b/i
/** These words say in which form the answer should come, not what is asked for. */
const FORMATS = wordSet('json csv yaml xml html markdown table format')
/** "A joke about directories" asks for a joke. */
const TOPIC = /\b([a-z]+)\s+(?:about|regarding|concerning|inspired)\b/gi

/**
 * Why the words of a sentence without values don't plainly ask for this tool: one shared word is not enough. `byMeaning`: a model
 * has compared meanings, which need no shared word.
 */
function offTopic(found: FoundTool, byMeaning: boolean): string | undefined {
  const { request, server, tool, confidence } = found
  if (hasValues(found)) return undefined
  const sentence = withoutValues(request)
  if (REMARK.test(sentence)) return 'The request is a remark.'
  const name = wordsOf(tool.name).filter((word) => !STOP_WORDS.has(word) && !isAsking(word))
  const said = wordsOf(sentence).filter((word) => name.includes(word) || isTopic(word))
  if (said.length === 0) return 'The request does not say what it is about.'
  if (byMeaning && confidence >= SURE_ENOUGH) return undefined
  const nameTerms = new Set(wordsOf(`${server} ${tool.name}`).map(termOf))
  const own = new Set([
    ...nameTerms,
    ...wordsOf(`${tool.description.slice(0, 2000)} ${parameterText(tool.inputSchema)}`).map(termOf)
  ])
  const known = said.filter((word) => isOf(own, word))
  if (known.length === 0) return 'The request has no word of what this tool does.'
  const asked = [...sentence.matchAll(TOPIC)].map(([, word = '']) => word.toLowerCase())
  const other = asked.find((word) => isTopic(word) && !isOf(own, word))
  if (other !== undefined) return `The request asks for "${other}", which this tool does not mention.`
  if (known.length * 2 <= said.length) return 'This tool mentions few of the words of the request.'
  const isNamed = known.some((word) => isOf(nameTerms, word))
  return isNamed || known.length > 1 ? undefined : 'The request has only one word of what this tool does.'
}

function isTopic(word: string): boolean {
  return (
    word !== 'x' &&
    !/^\d+$/.test(word) &&
    !FORMATS.has(word) &&
    !STOP_WORDS.has(word) &&
    !WEAK_WORDS.has(word) &&
    !isAsking(word)
  )
}

/** "Folders" and "directories" are the same; `env` is short for "environment". */
function isOf(own: ReadonlySet<string>, word: string): boolean {
  const term = termOf(word)
  if (own.has(term) || relatedTerms(term).some((related) => related.weight >= SAME_WEIGHT && own.has(related.term)))
    return true
  return term.length > SHORT && [...own].some((each) => each.length >= SHORT && term.startsWith(each))
}

/** The caller probably means another tool. */
function unknownParams({ tool, params }: FoundTool): string | undefined {
  const unknown = unknownNames(tool.inputSchema, params)
  if (unknown.length === 0) return undefined
  const named = unknown.slice(0, MAX_NAMED).map((name) => JSON.stringify(name.slice(0, MAX_NAME)))
  return `This tool has no such parameters: ${named.join(', ')}${unknown.length > MAX_NAMED ? ' and more' : ''}.`
}

/** Whether the whole call can be shown to the client's user. */
export function canConfirm({ prompter }: CallContext, params: Record<string, unknown>): boolean {
  return prompter?.choose !== undefined && showAsData(params).length <= MAX_SHOWN
}
