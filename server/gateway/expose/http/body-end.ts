/**
 * Returns the same response and calls `onEnd` once, when its body was read, cancelled, or its reader is `gone`. The request's
 * signal alone is not enough: it follows another one by a weak reference, which is lost after a garbage collection.
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
