import type { CallEntry } from '../../../contract/transcript.ts'
import type { IconName } from '../../components/shared/icons.ts'
import { isCommand, splitEnding } from './call-summary.ts'
import { resultParts } from './result-parts.ts'
import { interruptionWords } from './result-words.ts'

export type CallMark = 'imported' | 'rejected' | 'running' | 'unsure' | 'bad' | 'good'

/** How a decided call ended, for the icon of its row. */
export function callMark(call: CallEntry): CallMark {
  const { decision, result } = call
  if (decision?.by === 'imported') return 'imported'
  if (!decision?.approved) return 'rejected'
  if (!result) return 'running'
  if (interruptionWords(result)) return 'unsure'
  if (result.isError) return 'bad'
  const ending = isCommand(call) ? splitEnding(resultParts(result.content).text, result.ending).ending : null
  return ending?.isGood === false ? 'bad' : 'good'
}

export const MARKS: Record<CallMark, { icon: IconName; tone: string }> = {
  imported: { icon: 'archive', tone: 'text-muted' },
  rejected: { icon: 'close', tone: 'text-danger' },
  running: { icon: 'play', tone: 'text-muted' },
  unsure: { icon: 'warning', tone: 'text-warn' },
  bad: { icon: 'warning', tone: 'text-danger' },
  good: { icon: 'check', tone: 'text-ok' }
}
