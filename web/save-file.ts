/** Saves the body of a response as a download. A plain link can't send the owner's proof. */
export async function saveFile(response: Response | Promise<Response>, name: string): Promise<void> {
  const url = URL.createObjectURL(await (await response).blob())
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The download has its own reference by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
