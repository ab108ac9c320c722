/** All tools of all servers, indexed for search, and their ranking for a request. */

import { evidenceOf } from './evidence.ts'
import { createConceptReader } from './lexical/concepts.ts'
import { createLexicalIndex } from './lexical/lexical-index.ts'
import { createLexicalScorer } from './lexical/lexical-scorer.ts'
import { readMeaning } from './meaning.ts'
import { createNameIndex } from './names/name-index.ts'
import type { FindOptions, RoutableTool, ServerHints } from './port.ts'
import { rank } from './ranking.ts'
import type { OwnedUsage } from './usage/owned-usage.ts'
import { maskLiterals } from './words/mask-literals.ts'
import { createNearWords } from './words/near-words.ts'
import { createValueTakers } from './words/value-takers.ts'
import { termOf } from './words/words.ts'

/** Only this much of a request is read. */
const MAX_REQUEST = 4000

type JudgeOptions = Pick<FindOptions, 'server' | 'similarities' | 'owner' | 'ignoresUsage'>

/** Includes the length, so that no separator inside a name can make two keys equal. */
export function toolKey(server: string, tool: string): string {
  return `${server.length}:${server}:${tool}`
}

/** Whether a number and the word before it stand together in some tool's text ("C++ 17"), or a tool knows the word ("COVID-19"). */
function isPair(before: string, value: string, has: (term: string) => boolean): boolean {
  const [, letters] = /^([a-z]+)-\d+$/i.exec(value) ?? []
  if (letters !== undefined) return has(termOf(letters.toLowerCase()))
  const [word] = /[\p{L}\p{N}]+(?=[^\p{L}\p{N}]*$)/u.exec(before) ?? []
  return word !== undefined && /^\d+$/.test(value) && has(`${termOf(word.toLowerCase())} ${value}`)
}

export function createToolCorpus(usage: OwnedUsage) {
  const nearWords = createNearWords()
  const index = createLexicalIndex(nearWords)
  const scoreWords = createLexicalScorer(index, createConceptReader(index, nearWords))
  const names = createNameIndex()
  const servers = new Map<string, number[]>()
  const slots = new Map<string, number>()
  const takers = createValueTakers()
  const serverOf = (slot: number): string => index.tools[slot]?.server ?? ''
  const nameOf = (slot: number): string => index.tools[slot]?.name ?? ''
  const keyOf = (slot: number): string => toolKey(serverOf(slot), nameOf(slot))
  const wordsOf = (slot: number): number => (index.tools[slot]?.lengths ?? []).reduce((sum, length) => sum + length, 0)
  const slotOf = (key: string): number | undefined => slots.get(key)

  function removeServer(server: string): void {
    for (const slot of servers.get(server) ?? []) {
      const name = index.tools[slot]?.name ?? ''
      names.removeTool(name, slot)
      takers.remove(slot)
      slots.delete(toolKey(server, name))
      index.remove(slot)
    }
    if (servers.delete(server)) names.removeServer(server)
  }

  function slotsOf(wanted: Iterable<string>): Set<number> {
    return new Set([...wanted].flatMap((server) => servers.get(server) ?? []))
  }

  return {
    removeServer,
    tool: (slot: number) => index.tools[slot],
    setServer(server: string, tools: readonly RoutableTool[], hints?: ServerHints): void {
      removeServer(server)
      const own: number[] = []
      // A server that lists a name twice can only be called by that name: the last definition counts.
      for (const tool of new Map(tools.map((each) => [each.name, each])).values()) {
        const slot = index.add({ ...tool, server }, hints)
        own.push(slot)
        slots.set(toolKey(server, tool.name), slot)
        names.addTool(tool.name, slot)
        takers.add(slot, tool.params ?? '')
      }
      servers.set(server, own)
      names.addServer(server)
    },
    judge(text: string, { server, similarities, owner, ignoresUsage }: JudgeOptions = {}) {
      const request = text.slice(0, MAX_REQUEST)
      const masked = maskLiterals(request, (value, before) => names.has(value) || isPair(before, value, index.has))
      const lexical = scoreWords(masked.text)
      const named = names.named(request)
      const opinion = ignoresUsage ? undefined : usage.opinion(request, owner)
      const wanted = server === undefined ? named.servers : [server]
      const restricted = server !== undefined || named.servers.size > 0
      const only = restricted ? slotsOf(wanted) : undefined
      // A request of function words alone ("where is it?") is near some tool by chance.
      const meaning = readMeaning(lexical.concepts > 0 ? similarities : undefined, slotOf)
      const asked = { lexical, named, opinion, meaning, takers: takers.of(masked.kinds) }
      const ranked = rank({ ...asked, only, serverOf, keyOf, slotOf })
      const isUsed = ranked.some((candidate) => candidate.usage > 0)
      const nearest = isUsed && opinion ? opinion.nearest * opinion.support : 0
      const size = only?.size ?? index.size
      const about = { ranked, lexical, meaning, restricted, size, nearest }
      const recalled = isUsed ? (opinion?.recalled ?? 0) : 0
      return { ranked, recalled, evidence: evidenceOf({ ...about, serverOf, nameOf, wordsOf }) }
    }
  }
}
