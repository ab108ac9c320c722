/**
 * Doubts about a sentence that comes with a named tool that may write. The client chose the tool; the sentence may still forbid
 * the call, ask about it, or name a value only to leave it out. Invariant: values of a sentence reach such a tool only if the
 * sentence begins with the tool's own verb and has none of these forms.
 */

import type { StoredTool } from '../../catalog/stored-tools.ts'
import { wordsOf } from '../../policy/plain-reader.ts'
import { doubtAbout, withoutValues } from './doubtful-sentence.ts'

type ToolText = Pick<StoredTool, 'name' | 'description'>

const DENIES =
  /\b(?:no|not|never|without|instead|except\w*|exclud\w+|but|others?|rest|else|apart|aside|besides|rather|nobody|nothing|neither|nor|none|cannot|\w*n\s?['’]t|dont|wont|keep|leave|spare|skip|avoid|forbid\w*|unless)\b/gi
/** Anywhere, unlike for a tool that reads: "see if it is open" orders nothing here. */
const DEPENDS = /\b(?:if|when|whenever|once|until|till|provided|assuming|otherwise|depending|maybe|perhaps)\b/i
const COMPARES = /\b(?:than|before|after|since|until|till|between)\b/i
const ASKS =
  /^\s*(?:and\s+|so\s+|but\s+)?(?:what|how|why|who|whose|when|where|which|whether|should|shall|is|are|was|were|do|does|did|may|might|must|am|if|has|have|had)\b/i
/** "Please", "could you", "I want you to": words before the order itself. */
const POLITE =
  /^(?:[\s,.!:]+|(?:please|kindly|now|just|ok|okay|hey|hi|hello|so|then|go\s+ahead\s+and|(?:can|could|would|will)\s+you|(?:i|we)(?:['’]d|\s+would)?\s+(?:want|need|like)(?:\s+you)?\s+to|let['’]?s|you\s+(?:can|may|should|must))\b)+/i

/** Why the sentence does not plainly ask for the tool; undefined if it may be run. */
export function doubtAboutRunning(request: string, tool: ToolText): string | undefined {
  const doubt = doubtAbout(request)
  if (doubt !== undefined) return doubt
  const sentence = bare(request)
  const own = new Set(wordsOf(tool.name))
  if ((sentence.match(DENIES) ?? []).some((word) => !own.has(word.toLowerCase()))) {
    return 'The request says what not to do.'
  }
  if (ASKS.test(sentence)) return 'The request asks a question.'
  return DEPENDS.test(sentence) ? 'The request depends on a condition.' : undefined
}

/** The same, stricter: values of the sentence would be sent to the tool. */
export function doubtAboutFilling(request: string, tool: ToolText): string | undefined {
  const doubt = doubtAboutRunning(request, tool)
  if (doubt !== undefined) return doubt
  const sentence = bare(request)
  const compared = COMPARES.exec(sentence)?.[0]
  if (compared !== undefined) return `The request says "${compared}", so its values may not be meant as they are.`
  const verb = /^\W*([A-Za-z]+)/.exec(sentence.replace(POLITE, ''))?.[1]?.toLowerCase() ?? ''
  return isVerbOf(verb, tool) ? undefined : 'The request does not begin with what this tool does.'
}

function bare(request: string): string {
  return withoutValues(request).replace(/=\s*\S+/g, '= X')
}

/** "Write" fits `write_file`, and "Writes a file". */
function isVerbOf(verb: string, { name, description }: ToolText): boolean {
  if (verb.length < 2) return false
  const stem = verb.length > 3 ? verb.replace(/e$/, '') : verb
  const own = [...wordsOf(name), ...wordsOf(description.slice(0, 200)).slice(0, 1)]
  return own.some((word) => word.startsWith(stem) && word.length <= verb.length + 3)
}
