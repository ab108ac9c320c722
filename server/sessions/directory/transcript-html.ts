/**
 * A conversation as one HTML file to share. Everything in it is hostile: all texts are escaped, hidden characters are shown by name,
 * nothing in the file runs or loads, links are text, and its own policy forbids the rest.
 */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Attachment } from '../../../contract/attachments.ts'
import { effectText } from '../../../contract/effects/effect-entries.ts'
import { isFileBlock } from '../../../contract/stored-files.ts'
import type { CallEntry, Transcript, TranscriptEntry } from '../../../contract/transcript.ts'
import { contentText } from '../../agent/model-history.ts'
import { escapedHtml } from './escaped-html.ts'
import { messageHtml } from './message-html.ts'

const STYLE = `:root{color-scheme:light dark}
body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1c1917;background:#fff}
h1{font-size:1.4rem;line-height:1.3}header p,footer{color:#57534e;font-size:.85rem}
article{margin:1.25rem 0}h2{font-size:.8rem;margin:0 0 .25rem;color:#57534e}
.text{white-space:pre-wrap;overflow-wrap:anywhere}
article h3,article h4,article h5,article h6{line-height:1.3;margin:1.1em 0 .4em;font-size:1.05rem}
.markdown{overflow-wrap:anywhere}.markdown p,.markdown ul,.markdown ol,.markdown blockquote{margin:.6em 0}
blockquote{margin-inline:0;padding-inline-start:.8rem;border-inline-start:3px solid #d6d3d1;color:#57534e}
code{background:#f5f5f4;border-radius:.3rem;padding:.1em .3em;font:.875em ui-monospace,monospace}
.table{overflow-x:auto}table{border-collapse:collapse}th,td{border:1px solid #d6d3d1;padding:.3rem .6rem;text-align:start}
.user .text{background:#e6f4f1;border-radius:.9rem;padding:.6rem 1rem}
details{border:1px solid #d6d3d1;border-radius:.6rem;padding:.4rem .8rem}summary{cursor:pointer;overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f5f5f4;border-radius:.4rem;padding:.6rem;margin:.5rem 0;font:13px/1.5 ui-monospace,monospace}
img{max-width:100%;max-height:24rem;border-radius:.6rem}
.rewound{opacity:.7}.rewound .text,.rewound summary{text-decoration:line-through}
.note{color:#57534e;font-size:.85rem;text-align:center}
@media(prefers-color-scheme:dark){body{color:#e7e5e4;background:#1c1917}header p,footer,h2,.note{color:#a8a29e}article h3,article h4,article h5,article h6{line-height:1.3;margin:1.1em 0 .4em;font-size:1.05rem}
.markdown{overflow-wrap:anywhere}.markdown p,.markdown ul,.markdown ol,.markdown blockquote{margin:.6em 0}
blockquote{margin-inline:0;padding-inline-start:.8rem;border-inline-start:3px solid #d6d3d1;color:#57534e}
code{background:#f5f5f4;border-radius:.3rem;padding:.1em .3em;font:.875em ui-monospace,monospace}
.table{overflow-x:auto}table{border-collapse:collapse}th,td{border:1px solid #d6d3d1;padding:.3rem .6rem;text-align:start}
.user .text{background:#134e4a}blockquote{color:#a8a29e}details,blockquote,th,td{border-color:#44403c}pre,code{background:#292524}}
@media print{details{border:0}}`
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'`

/**
 * Parsing stops everything else in this process, for up to 5 ms per 1,000 hostile characters. Longer messages, and what exceeds the sum,
 * stay as they were written.
 */
const MAX_MESSAGE_CHARS = 40_000
const MAX_MARKDOWN_CHARS = 400_000

interface Shared {
  images: SharedImages
  /** Messages of the model whose Markdown is laid out. */
  laidOut: ReadonlyMap<TranscriptEntry, string>
}

/** Images of the conversation as `data:` addresses, by the ids of their content. */
export type SharedImages = ReadonlyMap<string, string>

export async function transcriptHtml(
  title: string,
  transcript: Transcript,
  images: SharedImages = new Map()
): Promise<string> {
  const name = escapedHtml(title.replace(/\s+/g, ' '), 'prose')
  const laidOut = await layOut(transcript.entries)
  const entries = transcript.entries
    .map((entry) => crossedOut(entry, entryHtml(entry, transcript, { images, laidOut })))
    .filter((html) => html !== '')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${name}</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>${name}</h1><p>A conversation with MCP Orchestrator${transcript.model === null ? '' : ` and ${escapedHtml(transcript.model, 'strict')}`}. Read only.</p></header>
<main>
${entries.join('\n')}
</main>
<footer>Exported on ${new Date().toISOString().slice(0, 10)}.</footer>
</body>
</html>
`
}

/** Kinds of entries that later versions add are left out. */
function entryHtml(entry: TranscriptEntry, { calls }: Transcript, { images, laidOut }: Shared): string {
  switch (entry.kind) {
    case 'user':
      return message('user', 'You', plainHtml(entry.text), filesHtml(entry.attachments ?? [], images))
    case 'agent':
      if (entry.text === '') return ''
      return message(
        'agent',
        `Model${entry.superseded ? ' (earlier answer)' : ''}${entry.partial ? ' (cut off)' : ''}`,
        laidOut.get(entry) ?? plainHtml(entry.text)
      )
    case 'call':
      return callHtml(calls[entry.callId], images)
    case 'review':
    case 'reverted':
    case 'rewound':
      return `<p class="note">${escapedHtml(effectText(entry), 'prose')}</p>`
    case 'error':
    case 'notice':
      return `<p class="note">${escapedHtml(entry.message, 'prose')}</p>`
    case 'fresh-start':
    case 'model-switch':
      return `<hr><p class="note">${entry.kind === 'fresh-start' ? 'A fresh start' : 'Continued'}${entry.model ? ` with ${escapedHtml(entry.model, 'strict')}` : ''}</p>`
    default:
      return ''
  }
}

/** Entries that the person took back stay readable. */
function crossedOut({ rewound }: TranscriptEntry, html: string): string {
  return rewound && html !== '' ? `<div class="rewound"><p class="note">Taken back</p>${html}</div>` : html
}

function plainHtml(text: string): string {
  return text === '' ? '' : `<div class="text">${escapedHtml(text, 'prose')}</div>`
}

/** Lets other work of this process go on between two messages. */
async function layOut(entries: readonly TranscriptEntry[]): Promise<Map<TranscriptEntry, string>> {
  const laidOut = new Map<TranscriptEntry, string>()
  let left = MAX_MARKDOWN_CHARS
  for (const entry of entries) {
    if (entry.kind !== 'agent' || entry.text.length > Math.min(left, MAX_MESSAGE_CHARS)) continue
    left -= entry.text.length
    laidOut.set(entry, `<div class="markdown">${messageHtml(entry.text)}</div>`)
    await setImmediate()
  }
  return laidOut
}

function message(kind: string, who: string, words: string, files = ''): string {
  return `<article class="${kind}"><h2>${who}</h2>${files}${words}</article>`
}

function filesHtml(files: readonly Pick<Attachment, 'id' | 'name' | 'view'>[], images: SharedImages): string {
  return files
    .map(({ id, name, view }) => {
      const image = images.get(view?.id ?? id)
      // Our own base64: nothing of the file itself is in the text of the page.
      return image
        ? `<p><img src="${image}" alt="${escapedHtml(name, 'strict')}"></p>`
        : `<p>${escapedHtml(name, 'strict')}</p>`
    })
    .join('')
}

function callHtml(call: CallEntry | undefined, images: SharedImages): string {
  if (!call) return ''
  const { server, name, args, decision, result } = call
  const verdict = decision ? `${decision.approved ? 'approved' : 'not approved'} (${decision.by})` : 'not decided'
  const ran = JSON.stringify(decision?.editedArgs ?? args, null, 2)
  const shown = (result?.content ?? []).filter(isFileBlock).filter(({ file }) => images.has(file.id))
  const files = shown.map(({ file, ...block }) => ({ id: file.id, name: block.name ?? 'image' }))
  const text = result ? `<pre>${escapedHtml(contentText(result.content), 'columns')}</pre>` : ''
  const output = text + filesHtml(files, images)
  return `<article class="call"><details><summary>${escapedHtml(`${server}/${name}`, 'strict')}: ${escapedHtml(verdict, 'strict')}</summary><pre>${escapedHtml(ran, 'columns')}</pre>${output}</details></article>`
}
