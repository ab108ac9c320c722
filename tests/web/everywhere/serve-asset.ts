import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join, normalize } from 'node:path'
import { cachePolicy, framePolicy } from '../../../server/http/page-files.ts'

const WEB = join(import.meta.dirname, '../../../dist/web')
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml'
}

/** A file of the built page, with the headers that the real server sends, and compressed if the build has compressed it. */
export async function serveAsset(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const file = join(WEB, path === '/' ? '/index.html' : normalize(path))
  const isPacked = /\bbr\b/.test(String(request.headers['accept-encoding'])) && existsSync(`${file}.br`)
  try {
    const bytes = await readFile(isPacked ? `${file}.br` : file)
    const policy = framePolicy(file)
    if (policy !== undefined) response.setHeader('content-security-policy', policy)
    if (isPacked) response.setHeader('content-encoding', 'br')
    response.setHeader('cache-control', cachePolicy(file))
    response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream').end(bytes)
  } catch {
    response.writeHead(404).end('{}')
  }
}
