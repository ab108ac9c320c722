/**
 * Draws the math of a block. Loaded when the first math is shown. KaTeX gets no trust: it makes no links and sets no attributes of the
 * author's choice. What it can't draw stays as its source.
 */
import katex from 'katex'
import 'katex/dist/katex.min.css'

const MAX_FORMULAS = 300
const OPTIONS = { throwOnError: true, trust: false, strict: 'ignore', maxSize: 20, maxExpand: 500 } as const

export function drawMath(block: Element): void {
  for (const place of [...block.querySelectorAll<HTMLElement>('[data-tex]')].slice(0, MAX_FORMULAS)) {
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
}
