/**
 * Doubts by the form of a sentence, for tools that only read. Invariant: what a clause begins with must be known to ask for
 * something; no list has to know every order there is.
 */

import type { StoredTool } from '../../catalog/stored-tools.ts'
import { wordSet } from '../../lib/word-set.ts'
import { AMBIGUOUS_WORDS, EFFECT_WORDS } from '../../policy/effect-words.ts'
import { meansEffect, wordsOf } from '../../policy/plain-reader.ts'
import { STOP_WORDS, WEAK_WORDS } from '../../routing/words/stop-words.ts'

type Told = Pick<StoredTool, 'name' | 'description'>

/** Verbs that ask to be shown or told something, and common first words of a request. */
const ASKING =
  wordSet(`add analyze analyse ask browse calculate check compare compute count define describe determine discover display estimate evaluate
  examine explain explore extract fetch figure filter find forecast gather get give identify inform inspect list locate look lookup
  measure obtain outline peek predict present print provide pull query quote read recommend remind report research retrieve return
  review scan search see show sort summarise summarize suggest tell track translate view
  x could please kindly greetings good dear anyone anybody during regarding considering given looking planning trying`)
/** Known words that make somebody do something when they begin a clause: "let the router …", "have the logs shredded". */
const CAUSING = wordSet('make makes let have take use using enable allow come go')

const NEGATION =
  /\b(?:no|not|never|without|instead|except|excluding|excepting|scratch|nobody|nothing|neither|nor|cannot|\w*n['’]t)\b(?:\s+(\w+))?/gi
/** Exceptions and refusals that need more than one word: "no need to", "anything but", "other than". */
const LEAVES_OUT = new RegExp(
  [
    String.raw`\bno\s+need\s+(?:to|for)\b`,
    String.raw`\bno\s+more\s*(?=$|[.;!?])`,
    String.raw`\b(?:any|every|no)(?:thing|one|body)\s+but\b`,
    String.raw`\b(?:any|every|all)\s+(?:\w+\s+){0,3}?but\s+(?:the|those|these|this|that|my|our|for|X|\d+|\w+=)`,
    String.raw`\b(?:other|others)\s+than\b`,
    String.raw`\b(?:apart|aside)\s+from\b`,
    String.raw`\bsave\s+for\s+(?:the|X)\b`
  ].join('|'),
  'i'
)
/** "Issues that are not closed" describes; "not only", "no more than" and "can't find" deny nothing. */
const DESCRIBES =
  /\b(?:that|which|who|whose|where|are|is|was|were|have|has|i|we|they|if|why|am|it|whether\s+or)(?:\s+(?:do|does|did))?\s*$/i
const HARMLESS_NEXT =
  wordSet(`only just limited sure more less later matter longer need mind care have know understand find seem think want like yet necessarily
  exceeding any hassle doubt`)

/** "…, wipe them", "- scratch that": a verb with its object, in a clause of its own. */
const SECOND_ORDER =
  /(?:\b(?:and|then|or|but|rather)\b|[,;:&–—]|\s-\s|\()\s*(?:(?:then|also|rather|just|please)\s*)?(\w+)\s+(?:it|them|those|these|him|her|everything|all(?=\s*(?:$|[.,;!?)]))|that(?=\s*(?:$|[.,;!?)])))\b/gi
/** "And burn the devices", ", flagging spam": a known verb of change in a second clause. */
const SECOND_CHANGE =
  /\b(?:and|then)\s+(\w+)\s+(?:the|all|every|each|my|our)\b|(?:[,;–—]|\bwhile)\s*(\w+ing)(?:\s+\w+){1,3}\s*[.!]?\s*$/gi
/** They change nothing: "using", "taking into account". */
const NO_CHANGE_ING = wordSet('using taking making starting working covering following including looking getting')
/** "Get the logs wiped", "have the order reversed", "get all devices off". */
const CAUSED =
  /(?:^|[.;!?,]\s*|\b(?:please|to|and|then|you)\s+)(?:get|gets|have|has|see|want|need)\s+(?:\w+\s+){1,6}(\w+ed|\w+wn|off|out|up|down|away|gone|sent|paid|sold|cut|shut|done|back|ready|rid)\s*(?:$|[.;!?,])/i

/** Phrases that ask for a change with words that each ask for nothing: "get rid of it", "the logs have to go", "give Bob access". */
const CHANGING_PHRASE = new RegExp(
  [
    String.raw`\brid\s+(?:\w+\s+)?of\b`,
    String.raw`\bdo\s+away\s+with\b`,
    String.raw`\bno\s+longer\s+(?:need|want)`,
    String.raw`\bgone\s*(?=$|[.;!?,])`,
    String.raw`\b(?:the|all|these|those|every|my)\s+(?:\w+\s+){1,2}(?:must|needs?\s+to|ha(?:s|ve)\s+to)\s+go\s*(?=$|[.;!?,])`,
    String.raw`\b(?:i|we)\s+(?:want|need)\s+(?:the|all|these|those|my|our|every)\s+(?:\w+\s+){1,3}(?:\w+ed|off|out|away|down)\s*(?=$|[.;!?])`,
    String.raw`\bgive\s+(?:back|away)\b`,
    String.raw`\bgive\s+(?!me\b|us\b)(?:\w+\s+){1,4}(?:access|permission|a\s+new)\b`,
    String.raw`\b(?:tell|ask|instruct|remind)\s+(?!me\b|us\b|you\b|how\b)\w+\s+to\b`,
    String.raw`\b(?:report|present)\s+(?:\w+\s+){1,4}to\b`,
    String.raw`\b(?:get|pull)\s+(?:\w+\s+){1,4}(?:off|from)\s+(?:the|my|our)\s+(?:list|shop|shelf|market|system)\b`,
    String.raw`\bget\s+(?!(?:the\s+)?(?:most|best|more)\b)(?:\w+\s+){1,4}out\s+of\s+(?:the|my|our|this|here)\b`,
    String.raw`\b(?:and|then)\s+(?:answer|reply\s+to)\s+(?:it|them)\b`,
    String.raw`^\s*(?:(?:one|two|three|\d+|some)\s+more|another)\b`,
    String.raw`\bpull\s+the\s+plug\b`,
    String.raw`\bprovide\s+(?!(?:me|us|you|her|him|them)\b)\w+\s+with\s+(?:the|my|our|access)\b`,
    String.raw`\bmind\s+(?!(?:tell|show|giv|check|look|find|search|list|explain|shar|help|gett|provid|recommend|suggest)ing\b)\w+ing\b`
  ].join('|'),
  'i'
)
/** "How do I get rid of ants?" asks. */
const ASKS_BEFORE = /\b(?:how|where|what|which|who|why)\b/i

const NO_CHANGE = wordSet('need feed speed seed red bed related based listed used updated interested')
/** "Ban all users", "Kick the router": a capital letter at the start of a sentence makes no name. */
const LIKE_AN_ORDER = /^\s*[A-Z][a-z]+\s+(?:all|the|every|my|it|them)\b/

/** "Find it", "show me that one": what is meant was said before, and not to us. */
const ONLY_POINTS =
  /^\W*(?:please\s+)?[a-z]+\s+(?:me\s+)?(?:it|this|that|them|these|those)(?:\s+(?:one|ones|again|now|please))*\W*$/i

export function doubtAboutForm(said: string, tool: Told): string | undefined {
  if (ONLY_POINTS.test(said)) return 'The request does not say what it is about.'
  const own = new Set([...wordsOf(tool.name), ...wordsOf(tool.description.slice(0, 2000))])
  if (LEAVES_OUT.test(said) || BUT_A_NAME.test(said) || deniesSomething(said)) return 'The request says what not to do.'
  const order =
    changingPhrase(said) ??
    secondOrder(said, own) ??
    secondChange(said, own) ??
    causedChange(said, own) ??
    unknownOpening(said, tool, own)
  return order === undefined ? undefined : `The request says "${order}", and this tool only reads.`
}

function changingPhrase(said: string): string | undefined {
  const match = CHANGING_PHRASE.exec(said)
  return match && !ASKS_BEFORE.test(said.slice(0, match.index)) ? match[0].trim() : undefined
}

/** "Any city but Paris": the capital letter tells it from "any cheap but good car". */
const BUT_A_NAME = /\b(?:[Aa]ny|[Ee]very|[Aa]ll)\s+(?:\w+\s+){0,3}?but\s+[A-Z][a-z]/

function deniesSomething(said: string): boolean {
  return [...said.matchAll(NEGATION)].some((match) => {
    const before = said.slice(0, match.index)
    if (HARMLESS_NEXT.has((match[1] ?? '').toLowerCase())) return false
    return !DESCRIBES.test(before)
  })
}

function secondOrder(said: string, own: ReadonlySet<string>): string | undefined {
  for (const [, verb = ''] of said.matchAll(SECOND_ORDER)) {
    const word = verb.toLowerCase()
    if (!/ing$/.test(word) && !isKnown(word, own)) return word
  }
  return undefined
}

function secondChange(said: string, own: ReadonlySet<string>): string | undefined {
  for (const [, verb = '', participle = ''] of said.matchAll(SECOND_CHANGE)) {
    const word = (verb || participle).toLowerCase()
    if (/ing$/.test(verb) || NO_CHANGE_ING.has(word) || isKnown(word, own) || isKnown(word.replace(/ing$/, ''), own))
      continue
    if (meansEffect(word, EFFECT_WORDS) || meansEffect(word, AMBIGUOUS_WORDS)) return word
  }
  return undefined
}

function causedChange(said: string, own: ReadonlySet<string>): string | undefined {
  const word = CAUSED.exec(said)?.[1]?.toLowerCase()
  return word === undefined || own.has(word) || NO_CHANGE.has(word) ? undefined : word
}

/** The first word of each sentence must be one that asks, or a word of the tool: "router logs" asks for them. */
function unknownOpening(said: string, tool: Told, own: ReadonlySet<string>): string | undefined {
  for (const clause of said.split(/(?<![.;!?\n])[.;!?\n]+(?:\s|$)/)) {
    const first = /^[\s"'(*-]*([A-Za-z]+)/.exec(clause)?.[1]
    if (first === undefined) continue
    const word = first.toLowerCase()
    // In a later sentence, a name or a remark: "Paris is fine too."
    if (clause !== said && /^[A-Z]/.test(first) && !LIKE_AN_ORDER.test(clause)) continue
    if (isPicture(clause, tool)) continue
    if (CAUSING.has(word) || !isKnown(word, own) || ordersAnother(clause, word, own)) return word
  }
  return undefined
}

/** "Take a screenshot", if that is what the tool is called. */
function isPicture(clause: string, { name }: Told): boolean {
  const noun = /^\s*(?:please\s+)?(?:take|make|capture)\s+an?\s+(?:[a-z]+\s+){0,3}(screenshot|snapshot|look)\b/i
    .exec(clause)?.[1]
    ?.toLowerCase()
  return noun !== undefined && (noun === 'look' || wordsOf(name).includes(noun))
}

/** "Order shoes" orders them, although the tool's name has "orders"; "order list" and "order" don't. */
function ordersAnother(clause: string, first: string, own: ReadonlySet<string>): boolean {
  if (ASKING.has(first) || STOP_WORDS.has(first) || WEAK_WORDS.has(first) || own.has(first)) return false
  if (!meansEffect(first, EFFECT_WORDS) && !meansEffect(first, AMBIGUOUS_WORDS)) return false
  const next = wordsOf(clause)[1]
  return next !== undefined && !isKnown(next, own)
}

/** Whether every word of the sentence asks for something or is the tool's own, so that no other tool can be meant. */
export function saysOnlyWhat(server: string, tool: Told, said: string): boolean {
  const own = new Set(wordsOf(`${server} ${tool.name} ${tool.description.slice(0, 2000)}`))
  return wordsOf(said).every((word) => isKnown(word, own) || own.has(word.replace(/s$/, '')))
}

export function isAsking(word: string): boolean {
  return ASKING.has(word)
}

function isKnown(word: string, own: ReadonlySet<string>): boolean {
  return ASKING.has(word) || STOP_WORDS.has(word) || WEAK_WORDS.has(word) || own.has(word) || own.has(`${word}s`)
}
