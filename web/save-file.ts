/**
 * Saves the body of a response as a download. A plain link can't send the owner's proof. The address has our origin for a minute, so it
 * has a type that no browser shows as a page.
 */
export async function saveFile(response: Response | Promise<Response>, name: string): Promise<void> {
  const received = await response
  const content = await received.arrayBuffer()
  const url = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = namedBy(received) ?? name
  link.click()
  // The download has its own reference by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** The name that the server gives a file that has none of its own. */
function namedBy({ headers }: Response): string | undefined {
  const [, encoded] = /filename\*=UTF-8''([\w%.~-]+)/.exec(headers.get('content-disposition') ?? '') ?? []
  try {
    return encoded && decodeURIComponent(encoded)
  } catch {
    return undefined
  }
}
