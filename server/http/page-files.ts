/**
 * Serves the files of the page. One of them is the frame in which the page draws diagrams: its code handles hostile text, so it has its
 * own policy, with an origin of its own and no network. Nothing may frame the page, and only the page may frame this file.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance } from 'fastify'

const FRAME = /^diagram-frame-[\w-]+\.html$/
/** Files whose name contains a hash of their content. Not the frame, whose policy may change while it does not. */
const HASHED = /[/\\]assets[/\\][^/\\]+\.(?!html)\w+$/
const YEAR_SECONDS = 365 * 86_400
const DAY_SECONDS = 86_400

export async function registerPage(server: FastifyInstance, root: string): Promise<void> {
  await server.register(fastifyStatic, {
    root,
    // Written by `npm run build` beside each file.
    preCompressed: true,
    cacheControl: false,
    setHeaders(reply, sent) {
      const path = sent.replace(/\.(br|gz)$/, '')
      reply.header('cache-control', cachePolicy(path))
      const policy = framePolicy(path)
      if (policy === undefined) return
      reply.header('content-security-policy', policy)
      // It asks for what a sandboxed frame has anyway; browsers warn about it there.
      reply.removeHeader('origin-agent-cluster')
    }
  })
}

/**
 * All other files have the same name in the next version, so browsers ask whether they have changed. They don't ask for the logo: the page
 * also shows it while the server is away.
 */
export function cachePolicy(path: string): string {
  if (basename(path) === 'favicon.svg') return `public, max-age=${DAY_SECONDS}`
  return HASHED.test(path) ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache'
}

/** Undefined for every other file. Allows the frame's one script, and what the page sends it as a `blob:`. */
export function framePolicy(path: string): string | undefined {
  if (!FRAME.test(basename(path))) return undefined
  const script = /<script>([\s\S]*?)<\/script>/.exec(readFileSync(path, 'utf8'))?.[1] ?? ''
  const hash = createHash('sha256').update(script).digest('base64')
  return [
    "default-src 'none'",
    `script-src 'sha256-${hash}' blob:`,
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    'sandbox allow-scripts'
  ].join(';')
}
