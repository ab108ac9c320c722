/** The routes of a session's files, over files that a test writes by hand. */
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer, json } from 'node:stream/consumers'

type Files = Map<string, Buffer>

const etagOf = (content: Buffer) => `"${createHash('sha256').update(content).digest('hex')}"`

/** Returns false for requests that are not about files. */
export async function serveFiles(
  files: Files,
  folders: Set<string>,
  request: IncomingMessage,
  response: ServerResponse
): Promise<boolean> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x')
  const route = /^\/api\/sessions\/[^/]+\/(files|file|folder|move)$/.exec(pathname)?.[1]
  if (route === undefined) return false
  const path = searchParams.get('path') ?? ''
  if (route === 'files') reply(response, { files: listed(files, folders, searchParams.get('path')), truncated: false })
  else if (route === 'folder') folders.add(((await json(request)) as { path: string }).path)
  else if (route === 'move') move(files, (await json(request)) as { from: string; to: string })
  else if (request.method === 'DELETE') files.delete(path)
  else if (request.method === 'PUT') put(files, path, request, response, await buffer(request))
  else {
    const content = files.get(path)
    if (content) response.setHeader('etag', etagOf(content)).end(content)
    else refuse(response, 400, 'file_refused')
  }
  if (!response.writableEnded) response.writeHead(204).end()
  return true
}

function put(files: Files, path: string, { headers }: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const known = files.get(path)
  if (headers['if-none-match'] === '*' && known) return void refuse(response, 409, 'file_exists')
  const match = headers['if-match']
  if (match !== undefined && (!known || etagOf(known) !== match)) return void refuse(response, 409, 'file_changed')
  files.set(path, body)
}

function move(files: Files, { from, to }: { from: string; to: string }): void {
  for (const [path, content] of [...files]) {
    if (path !== from && !path.startsWith(`${from}/`)) continue
    files.delete(path)
    files.set(to + path.slice(from.length), content)
  }
}

/** Folders are those in the paths of the files, and those that were made. */
function listed(files: Files, folders: ReadonlySet<string>, folder: string | null): object[] {
  const all = new Map<string, object>()
  const file = (path: string, { length: size }: Buffer) => ({ path, type: 'file', size, mtimeMs: 1 })
  if (folder === null) return [...files].map(([path, content]) => file(path, content))
  const inside = folder === '' ? '' : `${folder}/`
  const addFolder = (name: string) => all.set(name, { path: inside + name, type: 'directory', size: 0, mtimeMs: 0 })
  for (const [path, content] of files) {
    if (!path.startsWith(inside)) continue
    const [name = '', ...more] = path.slice(inside.length).split('/')
    if (more.length > 0) addFolder(name)
    else all.set(name, file(path, content))
  }
  for (const made of folders) if (made.startsWith(inside)) addFolder(made.slice(inside.length).split('/')[0] ?? '')
  return [...all.values()]
}

function reply(response: ServerResponse, body: object): void {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.statusCode = status
  reply(response, { error: { code, message: `Refused: ${code}.` } })
}
