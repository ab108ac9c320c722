const NOT_UTF8 = '\0b64:'
const MAX_PATH_CHARS = 8192

/** Whether a path that the sandbox reports stays inside the workspace, judged by its form only. */
export function isWorkspacePath(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > MAX_PATH_CHARS) return false
  if (!value.startsWith(NOT_UTF8)) return isInside(value)
  const encoded = value.slice(NOT_UTF8.length)
  const decoded = Buffer.from(encoded, 'base64')
  return decoded.toString('base64') === encoded && isInside(decoded.toString('latin1'))
}

function isInside(path: string): boolean {
  if (path.includes('\0')) return false
  return path.split('/').every((name) => name !== '' && name !== '.' && name !== '..')
}
