import type { TranscriptEntry } from '../../contract/transcript.ts'

/** The entries to show: of each part that was taken back only the first, unless it is unfolded. */
export function foldRewound(
  entries: readonly TranscriptEntry[],
  unfolded: ReadonlySet<number>
): readonly TranscriptEntry[] {
  if (!entries.some(({ rewound }) => rewound)) return entries
  let first: number | undefined
  return entries.filter(({ seq, rewound }) => {
    if (!rewound) {
      first = undefined
      return true
    }
    if (first === undefined) {
      first = seq
      return true
    }
    return unfolded.has(first)
  })
}

/** The part that was taken back and begins with this entry; empty if the entry is not its first. */
export function rewoundPart(entries: readonly TranscriptEntry[], seq: number): readonly TranscriptEntry[] {
  const at = entries.findIndex((entry) => entry.seq === seq)
  if (at < 0 || !entries[at]?.rewound || entries[at - 1]?.rewound) return []
  const end = entries.findIndex((entry, index) => index > at && !entry.rewound)
  return entries.slice(at, end < 0 ? entries.length : end)
}

/** "2 messages, 1 answer and 3 calls" */
export function partWords(part: readonly TranscriptEntry[]): string {
  const of = (kind: TranscriptEntry['kind'], one: string, many: string) => {
    const number = part.filter((entry) => entry.kind === kind).length
    return number === 0 ? [] : [`${number} ${number === 1 ? one : many}`]
  }
  const words = [
    ...of('user', 'message', 'messages'),
    ...of('agent', 'answer', 'answers'),
    ...of('call', 'call', 'calls')
  ]
  return words.length < 2 ? (words[0] ?? '1 entry') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}
