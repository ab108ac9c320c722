/**
 * Recognizes sentences that don't plainly ask for what they name, so that not even a tool that reads runs for them without
 * confirmation. Invariant: a sentence in a form that these rules don't know, such as another language, is doubtful.
 */

import type { StoredTool } from '../../catalog/stored-tools.ts'
import { wordSet } from '../../lib/word-set.ts'
import { WRITE_ORDERS } from '../../policy/effect-words.ts'
import { meansEffect, wordsOf } from '../../policy/plain-reader.ts'
import { isPlainEnglish } from './plain-english.ts'
import { doubtAboutForm } from './sentence-form.ts'

type ToolText = Pick<StoredTool, 'name' | 'description'>

/** Longer than any sentence; the rest could say anything. */
const MAX_SENTENCE = 4000

const CLAUSE = String.raw`(?:^\s*|[.,;:!?]\s*|\b(?:please|but|and|so|also|then|must|should|shall|will|may|can|could|did|you|just)\s+)`
const NOT = String.raw`(?:do\s+not|don['\u2019]?t|not|never|avoid|refrain|no\s+need\s+to|(?:stop|cease|quit|skip)\s+\w+ing)\b(?!\s+(?:have|need|care|mind|want|know|think|like|only|just|limited|sure)\b)`
const NEGATED = new RegExp(
  `${CLAUSE}${NOT}|\\b(?:nobody|no[ -]?one|none)\\b(?:\\s+\\w+){0,3}?\\s+(?:should|must|may|can|shall|is|are)\\b`,
  'i'
)
/** "See if it is open" asks; "if it is open, …" makes it depend on that. */
const IF = String.raw`if\b(?!\s+(?:possible|available|needed|necessary|not|so|any|applicable|you\s+can|you\s+could))`
const ONLY_THEN = String.raw`unless|only\s+(?:if|when|once|after)|in\s+case|(?:as|so)\s+(?:soon|long)\s+as|provided\s+that|whenever|(?<!\bat\s)once\s+(?!(?:an?|per|more|every|in|upon|again|for|and|or|the\s+(?:day|week))\b)\w`
/** "When does the bus leave?" and "tell me when it leaves" ask for a time. */
const WHEN = String.raw`^\s*when\s+(?!(?:is|are|was|were|do|does|did|will|would|can|could|should|has|have|had)\b)[^?]*$|(?<!\b(?:me|us|know|see|check|find|out|tell|on|about|and|or|of|is|say|says|show|exactly|like)\s)(?<!^\s*)\bwhen\s+(?!(?:is|are|was|were|to|do|does|did|will|would)\b)\w`
const UNTIL = String.raw`\b(?:until|till)\s+(?:[\w']+\s+){1,4}(?:has|have|is|are|was|were|says?|agrees?|signs?|approves?|does|did)\b|\b(?:before|after)\s+(?:[\w']+\s+){1,3}(?:has|have|agrees?|signs?|approves?|says?)\b`
/** "Ask me first", "subject to approval", "until I stop you", "I wonder whether to …". */
const OPEN = String.raw`\bask\s+\w+\s+(?:first|before)\b|\bcheck\s+with\s+(?:me|us)\b|\b(?:subject\s+to|pending|(?:with|after|awaiting)\s+(?:my|our|your|the)?)\s*(?:approv|permission|consent|confirmation)|\b(?:until|till)\s+(?:i|we|you|told|further)\b|\b(?:wonder(?:ing)?|unsure|undecided)\s+(?:if|whether)\s+(?:to|(?:i|we)\s+should)\b`
const CONDITIONAL = new RegExp(`${CLAUSE}${IF}|\\b(?:${ONLY_THEN})|${WHEN}|${UNTIL}|${OPEN}`, 'i')
/** "What does cleanup do?" is about a tool. */
const ABOUT_A_TOOL =
  /^\s*(?:what|how)\s+(?:does|do|would|will)\b.{0,100}\b(?:do|work|mean)\s*[?.!]*\s*$|^\s*(?:which|what)\s+(?:tool|server|function|command)s?\b|\b(?:is|are)\s+there\s+(?:an?|any)\s+(?:tool|function|command)s?\b|\bdo\s+you\s+have\s+(?:an?|any)\s+(?:tool|function|command)s?\b/i
/** "Is list_orders safe?" */
const ASKS_ABOUT_NAME = /^\s*(?:is|are|was|does|do|did|can|why|how|what|which|explain|describe|document|define)\b/i

const MODAL = /^(?:should|must|shall|can|could|may|might|would)$/
/** Words that may come before an order inside a clause. */
const BEFORE_ORDER = wordSet('please and then or you just must should will now also to help directly finally')
/** "To" makes an order only after these: "where to send it" is a question. */
const BEFORE_TO = wordSet('want wants need needs like love have has going try you wish able ask asked sure')
/** Words that may come before the order at the beginning of a clause. */
const FILLERS = wordSet('please now just also then kindly finally first quickly next afterwards ok okay hey so go')
/** "Add two numbers" and "add 2 and 3" are arithmetic. */
const SUM_OF_NUMBERS = /\badd\s+-?\d+(?:\.\d+)?\s+(?:and|to|plus)\s+-?\d+(?:\.\d+)?/gi
const SUM = /^(?:up|together|\d+|two|three|four|five|numbers?|these|the\s+(?:two\s+)?numbers?)$/i

/** Why the sentence itself is doubtful, whichever tool it leads to. */
export function doubtAbout(request: string): string | undefined {
  if (request.length > MAX_SENTENCE) return 'The request is too long to be run without confirmation.'
  const sentence = withoutValues(request)
  if (NEGATED.test(sentence)) return 'The request says what not to do.'
  if (CONDITIONAL.test(sentence)) return 'The request depends on a condition.'
  if (ABOUT_A_TOOL.test(sentence)) return 'The request asks about a tool.'
  return undefined
}

/** Whether the sentence asks what the tool is or does, instead of asking for it. */
export function asksAbout(request: string, { name }: Pick<StoredTool, 'name'>): boolean {
  if (ABOUT_A_TOOL.test(withoutValues(request))) return true
  return /[_-]/.test(name) && request.includes(name) && ASKS_ABOUT_NAME.test(request)
}

/** Why the sentence is doubtful for a tool that reads: it may match the words of a request for something else. */
export function doubtAboutReading(request: string, tool: ToolText): string | undefined {
  const doubt = doubtAbout(request)
  if (doubt !== undefined) return doubt
  if (asksAbout(request, tool)) return 'The request asks about a tool.'
  const sentence = withoutValues(request)
  const order = orderIn(sentence, tool)
  if (order !== undefined) return `The request says "${order}", and this tool only reads.`
  const form = doubtAboutForm(sentence, tool)
  if (form !== undefined) return form
  if (!isPlainEnglish(sentence, tool)) return 'The request is not plainly in English, so its meaning is uncertain.'
  return undefined
}

/** Removes quoted texts, addresses and paths: they are data, whatever they say. */
export function withoutValues(request: string): string {
  return (
    request
      .replace(/"[^"]*"|“[^”]*”|(?<!\w)'[^']*'(?!\w)/g, ' X ')
      .replace(/(?<!\S)[^\s/\\@]*[/\\@]\S*/g, ' X ')
      // Joined words: "drag-and-drop", "clean-up", "non-empty".
      .replace(/(?<=\w)-(?=\w)/g, '')
  )
}

/** Finds an order to change something that is not part of the tool's own name. */
function orderIn(sentence: string, { name }: ToolText): string | undefined {
  const own = new Set(wordsOf(name))
  for (const clause of sentence.replace(SUM_OF_NUMBERS, 'X').split(/[.;:!?,()[\]\n]/)) {
    const words = wordsOf(clause.replace(/['’]/g, ''))
    const start = words.findIndex((word) => !FILLERS.has(word))
    const found = words.find((word, at) => {
      if (own.has(word) || !meansEffect(word, WRITE_ORDERS)) return false
      if (word === 'add' && SUM.test(words[at + 1] ?? '')) return false
      return WRITE_ORDERS.has(word) ? isOrder(words, at, start) : isWanted(words, at)
    })
    if (found !== undefined) return found
  }
  return undefined
}

function isOrder(words: string[], at: number, start: number): boolean {
  const before = words[at - 1] ?? ''
  if (at === start || (words[at - 2] === 'you' && MODAL.test(before))) return true
  return BEFORE_ORDER.has(before) && (before !== 'to' || BEFORE_TO.has(words[at - 2] ?? ''))
}

/** "… should be deleted", "could … be deleted". */
function isWanted(words: string[], at: number): boolean {
  return words[at - 1] === 'be' && (words[at - 2] === 'to' || words.slice(0, at - 1).some((word) => MODAL.test(word)))
}
