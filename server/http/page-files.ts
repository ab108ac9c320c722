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

export async function registerPage(server: FastifyInstance, root: string): Promise<void> {
  await server.register(fastifyStatic, {
    root,
    setHeaders(reply, path) {
      const policy = framePolicy(path)
      if (policy === undefined) return
      reply.header('content-security-policy', policy)
      // It asks for what a sandboxed frame has anyway; browsers warn about it there.
      reply.removeHeader('origin-agent-cluster')
    }
  })
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
