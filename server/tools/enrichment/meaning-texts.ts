/** The texts of a tool and of a request that are embedded, and the comparison of their embeddings. */
import { clausesOf } from '../../routing/lexical/clauses.ts'
import { nameLiterals } from '../../routing/words/mask-literals.ts'

const MAX_REQUEST = 1500
/** The beginning says what a tool is for; more of it costs time and blurs the meaning. */
const MAX_TOOL_TEXT = 600
/** The best clause counts more than the whole, because a long request asks for several things. With two clauses: */
const BEST_OF_TWO = 0.7

/** With the server's name, because "search by name" means little without it. */
export function toolText(server: string, { name, description }: { name: string; description: string }): string {
  const [of, own] = [server, name].map((text) => text.replace(/[_-]+|(?<=[a-z])(?=[A-Z])/g, ' '))
  return `${of === own ? own : `${of} ${own}`}: ${description}`.slice(0, MAX_TOOL_TEXT)
}

/** Whether most letters are Latin: a model that knows English only can say nothing about others. */
export function isMostlyLatin(text: string): boolean {
  const letters = text.match(/\p{L}/gu)?.length ?? 0
  return 2 * (text.match(/\p{Script=Latin}/gu)?.length ?? 0) >= letters
}

/** The request as a whole, and its clauses if it has several. */
export function requestTexts(request: string): string[] {
  const text = nameLiterals(request.slice(0, MAX_REQUEST))
  return [text, ...clausesOf(text).map((clause) => clause.text)]
}

/** `asked` are the vectors of `requestTexts`. All vectors have length 1. */
export function similarity([whole, ...clauses]: readonly Float32Array[], tool: Float32Array): number {
  const own = whole ? cosine(whole, tool) : Number.NaN
  if (clauses.length === 0) return own
  const best = Math.max(...clauses.map((clause) => cosine(clause, tool)))
  return clauses.length > 2 ? best : (1 - BEST_OF_TWO) * own + BEST_OF_TWO * best
}

function cosine(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Number.NaN
  let sum = 0
  for (let at = 0; at < a.length; at += 1) sum += (a[at] ?? 0) * (b[at] ?? 0)
  return sum
}

/** Mean and spread of the cosines that all-MiniLM-L6-v2 gives for a request and all tools. The router's confidence is fitted to them. */
const USUAL_MEAN = 0.1
const USUAL_SPREAD = 0.1

/** Brings the cosines of another model to that scale. Many models give 0.7 to unrelated texts. */
export function rescale(cosines: readonly number[]): number[] {
  const known = cosines.filter(Number.isFinite)
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length
  const spread = Math.sqrt(known.reduce((sum, value) => sum + (value - mean) ** 2, 0) / known.length)
  return cosines.map((value) => USUAL_MEAN + (spread > 0 ? (USUAL_SPREAD * (value - mean)) / spread : 0))
}
