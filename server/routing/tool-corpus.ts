/** All tools of all servers, indexed for search, and their ranking for a request. */

import { evidenceOf } from './evidence.ts'
import { createConceptReader } from './lexical/concepts.ts'
import { createLexicalIndex } from './lexical/lexical-index.ts'
import { createLexicalScorer } from './lexical/lexical-scorer.ts'
import { standOut } from './meaning.ts'
import { createNameIndex } from './names/name-index.ts'
import type { FindOptions, RoutableTool, ServerHints } from './port.ts'
import { rank } from './ranking.ts'
import type { OwnedUsage } from './usage/owned-usage.ts'
import { kindsTaken, maskLiterals } from './words/literals.ts'
import { createNearWords } from './words/near-words.ts'
import { put, take } from './words/set-map.ts'
import { termOf } from './words/words.ts'

/** Only this much of a request is read. */
const MAX_REQUEST = 4000

/** Includes the length, so that no separator inside a name can make two keys equal. */
export function toolKey(server: string, tool: string): string {
  return `${server.length}:${server}:${tool}`
}

export function createToolCorpus(usage: OwnedUsage) {
  const nearWords = createNearWords()
  const index = createLexicalIndex(nearWords)
  const scoreWords = createLexicalScorer(index, createConceptReader(index, nearWords))
  const names = createNameIndex()
  const servers = new Map<string, number[]>()
  const slots = new Map<string, number>()
  const takers = new Map<string, Set<number>>()
  const serverOf = (slot: number): string => index.tools[slot]?.server ?? ''
  const nameOf = (slot: number): string => index.tools[slot]?.name ?? ''
  const keyOf = (slot: number): string => toolKey(serverOf(slot), nameOf(slot))

  function removeServer(server: string): void {
    for (const slot of servers.get(server) ?? []) {
      const name = index.tools[slot]?.name ?? ''
      names.removeTool(name, slot)
      for (const kind of takers.keys()) take(takers, kind, slot)
      slots.delete(toolKey(server, name))
      index.remove(slot)
    }
    if (servers.delete(server)) names.removeServer(server)
  }

  function slotsOf(wanted: Iterable<string>): Set<number> {
    return new Set([...wanted].flatMap((server) => servers.get(server) ?? []))
  }

  function isNamePart(value: string, before: string): boolean {
    if (names.has(value)) return true
    const [word] = /[\p{L}\p{N}]+(?=[^\p{L}\p{N}]*$)/u.exec(before) ?? []
    return word !== undefined && /^\d+$/.test(value) && index.has(`${termOf(word.toLowerCase())} ${value}`)
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
        for (const kind of kindsTaken(tool.params ?? '')) put(takers, kind, slot)
      }
      servers.set(server, own)
      names.addServer(server)
    },
    judge(text: string, { server, similarities, owner }: Pick<FindOptions, 'server' | 'similarities' | 'owner'> = {}) {
      const request = text.slice(0, MAX_REQUEST)
      const masked = maskLiterals(request, isNamePart)
      const lexical = scoreWords(masked.text)
      const named = names.named(request)
      const opinion = usage.opinion(request, owner)
      const wanted = server === undefined ? named.servers : [server]
      const restricted = server !== undefined || named.servers.size > 0
      const only = restricted ? slotsOf(wanted) : undefined
      const slotOf = (key: string): number | undefined => slots.get(key)
      const meaning = standOut(similarities, slotOf)
      const fitting = new Set([...masked.kinds].flatMap((kind) => [...(takers.get(kind) ?? [])]))
      const ranked = rank({ only, serverOf, keyOf, slotOf, lexical, named, takers: fitting, opinion, meaning })
      const nearest = ranked.some((candidate) => candidate.usage > 0) ? (opinion?.nearest ?? 0) : 0
      return {
        ranked,
        evidence: evidenceOf({ ranked, lexical, serverOf, nameOf, restricted, size: only?.size ?? index.size, nearest })
      }
    }
  }
}
