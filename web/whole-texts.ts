const CUT = '.truncate, [class*="line-clamp"]'

/** A text that is cut off for lack of room shows whole in a tooltip. Elements with a tooltip of their own keep it. */
export function showWholeTexts(): void {
  const given = new WeakSet<Element>()
  function show({ target }: Event) {
    const cut = target instanceof Element ? target.closest(CUT) : null
    if (!(cut instanceof HTMLElement)) return
    const isCut = cut.scrollWidth > cut.clientWidth || cut.scrollHeight > cut.clientHeight + 1
    if (given.has(cut)) cut.removeAttribute('title')
    if (!isCut || cut.closest('[title]')?.matches(CUT)) return
    cut.title = cut.textContent.trim()
    given.add(cut)
  }
  document.addEventListener('pointerover', show)
}
