/**
 * Draws diagrams inside the sandboxed frame. Its source is hostile, and so may be what Mermaid makes of it: the page shows the result
 * as an image only, in which no script runs and from which nothing is loaded.
 */
import mermaid from 'mermaid'
import type { DrawnReply, DrawRequest } from './diagram-messages.ts'

const MAX_EDGES = 250

function configure(isDark: boolean): void {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: 'strict',
    suppressErrorRendering: true,
    maxTextSize: 20_000,
    maxEdges: MAX_EDGES,
    layout: 'dagre',
    // Text in an image must be SVG: HTML inside it is not drawn by all browsers.
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    fontFamily: 'system-ui, sans-serif',
    theme: isDark ? 'dark' : 'default',
    secure: [
      'secure',
      'securityLevel',
      'startOnLoad',
      'maxTextSize',
      'maxEdges',
      'suppressErrorRendering',
      'layout',
      'htmlLabels'
    ]
  })
}

async function draw({ id, source, isDark }: DrawRequest): Promise<DrawnReply> {
  const place = document.createElement('div')
  document.body.append(place)
  try {
    configure(isDark)
    const { svg } = await mermaid.render(`diagram-${id}`, source, place)
    place.innerHTML = svg
    const drawing = place.querySelector('svg')
    if (!drawing) throw new Error('Nothing was drawn.')
    const { width, height } = sizeOf(drawing)
    drawing.setAttribute('width', String(width))
    drawing.setAttribute('height', String(height))
    drawing.style.maxWidth = ''
    return { id, svg: new XMLSerializer().serializeToString(drawing), width, height }
  } catch (error) {
    return { id, error: error instanceof Error ? error.message : String(error) }
  } finally {
    place.remove()
  }
}

function sizeOf(drawing: SVGSVGElement): { width: number; height: number } {
  const { width, height } = drawing.viewBox.baseVal ?? {}
  const box = drawing.getBoundingClientRect()
  return { width: Math.ceil(width || box.width), height: Math.ceil(height || box.height) }
}

addEventListener('message', async ({ source, data }: MessageEvent<DrawRequest>) => {
  if (source === parent) parent.postMessage(await draw(data), '*')
})
parent.postMessage('ready', '*')
