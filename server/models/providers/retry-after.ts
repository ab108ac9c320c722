/** How long the provider asks us to wait, in ms: `retry-after-ms`, `retry-after` (seconds or a date), or Gemini's RetryInfo. */
export function retryAfterMs(
  headers: Record<string, string> | undefined,
  body: string | undefined,
  now = Date.now()
): number | undefined {
  const exact = numeric(headers?.['retry-after-ms'])
  if (exact !== undefined) return exact
  const told = headers?.['retry-after']
  const seconds = numeric(told)
  if (seconds !== undefined) return Math.ceil(seconds * 1000)
  const date = told !== undefined && /[a-z]/i.test(told) ? Date.parse(told) : Number.NaN
  if (!Number.isNaN(date)) return Math.max(0, date - now)
  const delay = body?.slice(0, 50_000).match(/"retryDelay"\s*:\s*"(\d{1,6}(?:\.\d{1,9})?)s"/)?.[1]
  return delay === undefined ? undefined : Math.ceil(Number(delay) * 1000)
}

function numeric(text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const value = Number(text)
  return Number.isFinite(value) && value >= 0 ? value : undefined
}
