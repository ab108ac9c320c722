/** Hands what a request brought to the browser as a download. A plain link could not carry the owner's proof. */
export async function saveFile(asked: Promise<Response>, name: string): Promise<void> {
  const url = URL.createObjectURL(await (await asked).blob())
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The download has its own reference by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
