/** An inverted index over tools with weighted fields. Adding or removing a tool touches only its own words. */

import type { RoutableTool, ServerHints } from '../port.ts'
import { pairsOf, terms } from '../words/words.ts'
import { createPostings, type Vocabulary } from './postings.ts'

export const FIELDS = ['name', 'server', 'description', 'params', 'hints'] as const
const FIELD_BITS = 6
const FIELD_MAX = (1 << FIELD_BITS) - 1
/** Text beyond these limits is not indexed, so that stuffing a description with keywords gains nothing. */
const FIELD_TERMS = [16, 12, 160, 120, 200]

/** How much of a description is kept for display. */
const MAX_DESCRIPTION = 4000

export interface IndexedTool {
  server: string
  /** A small number for the server. */
  serverId: number
  name: string
  description: string
  terms: string[]
  /** The distinct words of the name, to measure how much of it a request mentions. */
  nameTerms: string[]
  lengths: number[]
}

export function countInField(packed: number, field: number): number {
  return (packed >> (field * FIELD_BITS)) & FIELD_MAX
}

function hintText(hints: ServerHints | undefined): string {
  if (!hints) return ''
  return [hints.description ?? '', ...(hints.keywords ?? []), ...(hints.examples ?? [])].join(' \n ')
}

function fieldTerms(tool: RoutableTool, hints: ServerHints | undefined): string[][] {
  const hinted = [...(tool.examples ?? []), hintText(hints)].join(' \n ')
  const texts = [tool.name, tool.server, tool.description, tool.params ?? '', hinted]
  return texts.map((text, field) => terms(text, field < 2 ? 'name' : 'prose', FIELD_TERMS[field] ?? 0))
}

function packCounts(byField: string[][]): Map<string, number> {
  const packed = new Map<string, number>()
  byField.forEach((found, field) => {
    // Parameters and hints are lists, so neighbouring words are unrelated.
    for (const term of field < 3 ? [...found, ...pairsOf(found)] : found) {
      const before = packed.get(term) ?? 0
      if (countInField(before, field) < FIELD_MAX) packed.set(term, before + (1 << (field * FIELD_BITS)))
    }
  })
  return packed
}

function indexed(tool: RoutableTool, serverId: number, found: string[], lengths: number[]): IndexedTool {
  const nameTerms = [...new Set(terms(tool.name, 'parts', FIELD_TERMS[0] ?? 0))]
  const { server, name } = tool
  return {
    server,
    serverId,
    name,
    description: tool.description.slice(0, MAX_DESCRIPTION),
    terms: found,
    nameTerms,
    lengths
  }
}

function addTo(totals: number[], lengths: readonly number[], times: 1 | -1): void {
  lengths.forEach((length, field) => {
    totals[field] = (totals[field] ?? 0) + times * length
  })
}

export type LexicalIndex = ReturnType<typeof createLexicalIndex>

export function createLexicalIndex(vocabulary: Vocabulary) {
  const tools: (IndexedTool | undefined)[] = []
  const free: number[] = []
  const postings = createPostings(vocabulary)
  /** Kept when a server is removed: it often comes back under the same name. */
  const serverIds = new Map<string, number>()
  const totals = FIELDS.map(() => 0)
  let size = 0
  let version = 0
  let masses: number[] = []
  let massesOf = -1

  /** Rarity of a term among the tools. */
  function idf(term: string): number {
    const df = postings.get(term)?.slots.length ?? 0
    return Math.log(1 + (size - df + 0.5) / (df + 0.5))
  }

  return {
    tools,
    get size() {
      return size
    },
    /** Greater than every `serverId`. */
    get servers() {
      return serverIds.size
    },
    /** Changes whenever a tool is added or removed. */
    get version() {
      return version
    },
    add(tool: RoutableTool, hints: ServerHints | undefined): number {
      const slot = free.pop() ?? tools.length
      const byField = fieldTerms(tool, hints)
      const packed = packCounts(byField)
      for (const [term, counts] of packed) postings.post(term, slot, counts)
      const lengths = byField.map((found) => found.length)
      addTo(totals, lengths, 1)
      if (!serverIds.has(tool.server)) serverIds.set(tool.server, serverIds.size)
      tools[slot] = indexed(tool, serverIds.get(tool.server) ?? 0, [...packed.keys()], lengths)
      size += 1
      version += 1
      return slot
    },
    remove(slot: number): void {
      const tool = tools[slot]
      if (!tool) return
      for (const term of tool.terms) postings.unpost(term, slot)
      addTo(totals, tool.lengths, -1)
      tools[slot] = undefined
      free.push(slot)
      size -= 1
      version += 1
    },
    posting: postings.get,
    has: (term: string) => postings.get(term) !== undefined,
    idf,
    /** Rarity of a tool's name, summed over its words. */
    nameMass(slot: number): number {
      if (massesOf !== version) masses = []
      massesOf = version
      masses[slot] ??= tools[slot]?.nameTerms.reduce((sum, term) => sum + idf(term), 0) ?? 0
      return masses[slot]
    },
    /** Mean length of each field. */
    averages: () => totals.map((total) => (size === 0 ? 1 : Math.max(total / size, 1)))
  }
}
