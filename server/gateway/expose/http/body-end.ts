/**
 * The same answer, and `onEnd` once when its body has been read, was given up, or its reader has `gone`. Not by the request's
 * signal alone: that follows another by a weak reference, and says nothing any more after a garbage collection.
 */
export function bodyEnd(response: Response, gone: AbortSignal, onEnd: () => void): Response {
  const { body, status, headers } = response
  let isOver = false
  const over = () => {
    if (!isOver) onEnd()
    isOver = true
  }
  if (body === null || gone.aborted) over()
  else gone.addEventListener('abort', over, { once: true })
  return new Response(body?.pipeThrough(new TransformStream({ flush: over, cancel: over })) ?? null, {
    status,
    headers
  })
}
