import { effectText } from './effects/effect-entries.ts'
import { describeFile, isFileBlock, partType } from './stored-files.ts'
import type { CallEntry, Transcript, TranscriptEntry } from './transcript.ts'

/** A conversation as Markdown. Fences are longer than any run of backticks inside, so that nothing breaks out. */
export function transcriptMarkdown(title: string, transcript: Transcript): string {
  const parts = [`# ${title.replace(/\s+/g, ' ')}`]
  for (const entry of transcript.entries) {
    if (entry.kind === 'user') parts.push(userMarkdown(entry))
    else if (entry.kind === 'agent' && entry.text === '') continue
    else if (entry.kind === 'agent') parts.push(agentMarkdown(entry))
    else if (entry.kind === 'call') parts.push(callMarkdown(transcript.calls[entry.callId], entry.rewound))
    else if (entry.kind === 'model-switch') parts.push(`---\n\n*Continued with ${entry.model}.*`)
    else if (entry.kind === 'fresh-start')
      parts.push(`---\n\n*A fresh start${entry.model ? ` with ${entry.model}` : ''}.*`)
    else if (entry.kind === 'review' || entry.kind === 'reverted' || entry.kind === 'rewound')
      parts.push(`---\n\n*${effectText(entry)}*`)
    else parts.push(`> **${entry.code}:** ${entry.message}`)
  }
  return `${parts.join('\n\n')}\n`
}

function userMarkdown({ text, attachments = [], rewound }: Extract<TranscriptEntry, { kind: 'user' }>): string {
  const files = attachments.map((file) => fenced(`Attached: ${file.name} (${describeFile(file)})`, ''))
  return [`## You${takenBack(rewound)}`, text, ...files].filter((part) => part !== '').join('\n\n')
}

function agentMarkdown(entry: Extract<TranscriptEntry, { kind: 'agent' }>): string {
  const { text, partial, superseded, rewound } = entry
  return `## Model${superseded ? ' (earlier answer)' : ''}${takenBack(rewound)}\n\n${text}${partial ? '\n\n*(cut off)*' : ''}`
}

function takenBack(rewound: true | undefined): string {
  return rewound ? ' (taken back)' : ''
}

function callMarkdown(call: CallEntry | undefined, rewound: true | undefined): string {
  if (!call) return ''
  const { server, name, args, decision, result } = call
  const ran = decision?.editedArgs ?? args
  const verdict = decision ? `${decision.approved ? 'approved' : 'rejected'} by ${decision.by}` : 'not decided'
  const reason = decision?.reason ? ` (${decision.reason})` : ''
  const lines = [
    `### ${server}/${name}: ${verdict}${reason}${takenBack(rewound)}`,
    fenced(JSON.stringify(ran, null, 2), 'json')
  ]
  if (result) lines.push(fenced(result.content.map(textOf).join('\n'), ''))
  return lines.join('\n\n')
}

function textOf(part: unknown): string {
  if (isFileBlock(part)) return `[${part.type}: ${describeFile(part.file)}]`
  const { text } = (part ?? {}) as { text?: unknown }
  return typeof text === 'string' ? text : `[${partType(part)}]`
}

function fenced(text: string, language: string): string {
  let longest = 2
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}
