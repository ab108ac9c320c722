/** All text of a tool result. */
export function textOf(result: { content?: unknown } | undefined): string {
  const content = (result?.content ?? []) as { text?: string }[]
  return content.map(({ text }) => text ?? '').join('')
}
