/** Whether a point of the element is visible: inside the window and inside every box around it that scrolls or clips. */
export function isInView(element: HTMLElement, share = 0.5): boolean {
  const { top, height } = element.getBoundingClientRect()
  // Not laid out: not yet in the page, or in a closed dialog.
  if (height === 0) return false
  const y = top + share * height
  let isSeen = y >= 0 && y <= innerHeight
  for (let box = element.parentElement; box; box = box.parentElement) {
    if (getComputedStyle(box).overflowY === 'visible') continue
    const edge = box.getBoundingClientRect()
    isSeen &&= y >= edge.top && y <= edge.bottom
  }
  return isSeen
}
