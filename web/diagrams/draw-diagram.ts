/**
 * Draws diagrams in a frame that is sandboxed without `allow-same-origin`, so that their code can reach neither the page nor the
 * network. One diagram at a time. A frame that does not answer is thrown away.
 */
import engineUrl from './diagram-engine.ts?worker&url'
import frameUrl from './diagram-frame.html?url'
import { type DrawnReply, type DrawRequest, errorWords, isReply } from './diagram-messages.ts'

export interface Drawing {
  /** A data URL, for an image only. */
  src: string
  width: number
  height: number
}

/** The first drawing waits for the code. */
const START_MS = 60_000
const DRAW_MS = 15_000
const MAX_KEPT = 100

const kept = new Map<string, Drawing>()
let frame: Promise<HTMLIFrameElement> | undefined
let queue: Promise<unknown> = Promise.resolve()
let lastId = 0

/** Rejects with a sentence for the person. */
export function drawDiagram(source: string, isDark: boolean): Promise<Drawing> {
  const key = `${isDark} ${source}`
  const known = kept.get(key)
  if (known) return Promise.resolve(known)
  const drawing = queue.then(async () => {
    const made = await draw({ id: ++lastId, source, isDark })
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(key, made)
    return made
  })
  queue = drawing.catch(() => {})
  return drawing
}

async function draw(request: DrawRequest): Promise<Drawing> {
  frame ??= open()
  try {
    const view = await frame
    const answer = reply<DrawnReply>(view, DRAW_MS, (data) => isReply(data, request.id))
    view.contentWindow?.postMessage(request, '*')
    const drawn = await answer
    if ('error' in drawn) throw new DrawError(errorWords(drawn.error))
    return { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawn.svg)}`, ...sizeOf(drawn) }
  } catch (error) {
    if (!(error instanceof DrawError)) close()
    throw error
  }
}

const sizeOf = ({ width, height }: { width: number; height: number }) => ({ width, height })

/** The diagram is wrong; the frame works. */
class DrawError extends Error {}

async function open(): Promise<HTMLIFrameElement> {
  const view = document.createElement('iframe')
  view.className = 'diagram-frame'
  view.setAttribute('sandbox', 'allow-scripts')
  view.setAttribute('aria-hidden', 'true')
  view.tabIndex = -1
  view.title = 'Diagrams'
  view.src = frameUrl
  const loaded = reply(view, START_MS, (data) => data === 'loaded')
  document.body.append(view)
  const engine = fetch(engineUrl).then((response) =>
    response.ok ? response.text() : Promise.reject(new Error('The code that draws diagrams could not be loaded.'))
  )
  const [code] = await Promise.all([engine, loaded])
  const ready = reply(view, START_MS, (data) => data === 'ready')
  view.contentWindow?.postMessage(code, '*')
  await ready
  return view
}

function close(): void {
  frame = undefined
  for (const each of document.querySelectorAll('.diagram-frame')) each.remove()
}

/** The next message of the frame that fits. */
function reply<T>(view: HTMLIFrameElement, withinMs: number, fits: (data: unknown) => boolean): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(() => reject(new Error('Drawing this diagram takes too long.')), withinMs)
  const listen = ({ source, data }: MessageEvent) => {
    if (source === view.contentWindow && fits(data)) resolve(data)
  }
  addEventListener('message', listen)
  return promise.finally(() => {
    clearTimeout(timer)
    removeEventListener('message', listen)
  })
}
