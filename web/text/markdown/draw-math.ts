/**
 * Draws the math of a block. Loaded when the first math is shown. KaTeX gets no trust: it makes no links and sets no attributes of the
 * author's choice. What it can't draw stays as its source.
 */
import katex from 'katex'
import 'katex/dist/katex.min.css'

const OPTIONS = { throwOnError: true, trust: false, strict: 'ignore', maxSize: 20, maxExpand: 500 } as const
/** After this time, the page gets to draw and to answer clicks. */
const SLICE_MS = 12

export async function drawMath(block: Element): Promise<void> {
  let started = performance.now()
  for (const place of [...block.querySelectorAll<HTMLElement>('[data-tex]')]) {
    if (performance.now() - started > SLICE_MS) {
      await new Promise((resolve) => setTimeout(resolve))
      started = performance.now()
    }
    // The block may have been replaced by now.
    if (!block.contains(place)) return
    draw(place)
  }
}

function draw(place: HTMLElement): void {
  const tex = place.dataset.tex ?? ''
  delete place.dataset.tex
  // Drawn apart: half a formula must not take the place of its source.
  const drawn = document.createElement('span')
  try {
    katex.render(tex, drawn, { ...OPTIONS, displayMode: place.classList.contains('math-display') })
    place.replaceChildren(...drawn.childNodes)
    place.classList.add('is-drawn')
  } catch (error) {
    place.title = error instanceof Error ? error.message : 'This formula could not be drawn.'
  }
}
