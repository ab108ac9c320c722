/**
 * Sentences that don't plainly ask for what they name, so that not even a tool that reads is run for them unasked. Only the plain
 * cases: a reader that runs for one of the others does no harm, and a tool that may write is never run for a sentence.
 */

const CLAUSE = String.raw`(?:^|[.,;:!?]\s*|\b(?:please|but|and|so|also|then|must|should|will)\s+)`
const NOT = String.raw`(?:do\s+not|don['\u2019]?t|not|never|avoid|refrain|no\s+need\s+to)\b(?!\s+(?:have|need|care|mind|want|know|think|like|only|just|limited)\b)`
const NEGATED = new RegExp(`${CLAUSE}${NOT}`, 'i')
/** "See if it is open" asks; "if it is open, …" makes it depend on that. */
const CONDITIONAL = new RegExp(
  `${CLAUSE}if\\b(?!\\s+(?:possible|available|needed|necessary|not|so|you\\s+can|you\\s+could))|\\b(?:unless|only\\s+(?:if|when)|in\\s+case)\\b`,
  'i'
)
/** "What does cleanup do?" is about a tool. */
const ABOUT_A_TOOL = /^\s*(?:what|how)\s+(?:does|do|would|will)\b.{0,100}\b(?:do|work|mean)\s*[?.!]*\s*$/i

/** Undefined where nothing speaks against taking the sentence at its word. */
export function doubtAbout(request: string): string | undefined {
  if (NEGATED.test(request)) return 'The request says what not to do.'
  if (CONDITIONAL.test(request)) return 'The request depends on a condition.'
  if (ABOUT_A_TOOL.test(request)) return 'The request asks about a tool.'
  return undefined
}
