/**
 * Embeddings for the routing bench, by the model that `embeddings install` installs. Model and vectors are kept in the folder
 * ROUTING_VECTORS, by default one in the system's folder for temporary files: computing all of them takes minutes.
 */
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { installMinilm } from '../server/cli/embeddings-install.ts'
import { messageOf } from '../server/lib/errors.ts'
import { makeFolder } from '../server/lib/files/make-folder.ts'
import { LocalEmbedder } from '../server/models/local/local-embedder.ts'
import { hasMinilm } from '../server/models/local/minilm-files.ts'
import type { Similarities } from '../server/routing/port.ts'
import { toolKey } from '../server/routing/tool-corpus.ts'
import { isMostlyLatin, requestTexts, similarity, toolText } from '../server/tools/enrichment/meaning-texts.ts'
import type { RoutingSet } from './routing-data.ts'

const KEY_BYTES = 32
const DIMENSIONS = 384
const RECORD_BYTES = KEY_BYTES + DIMENSIONS * Float32Array.BYTES_PER_ELEMENT
const AT_ONCE = 16

export type SimilaritiesOf = (query: string) => Similarities | undefined

const keyOf = (text: string) => createHash('sha256').update(text).digest()

function readVectors(file: string): Map<string, Float32Array> {
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0)
  const found = new Map<string, Float32Array>()
  for (let at = 0; at + RECORD_BYTES <= bytes.length; at += RECORD_BYTES) {
    const record = bytes.subarray(at, at + RECORD_BYTES)
    const vector = new Float32Array(new Uint8Array(record.subarray(KEY_BYTES)).buffer)
    found.set(record.subarray(0, KEY_BYTES).toString('hex'), vector)
  }
  return found
}

export function vectorsFolder() {
  const folder = resolve(process.env.ROUTING_VECTORS || join(tmpdir(), 'mcp-orchestrator-routing-vectors'))
  return { folder, model: join(folder, 'model') }
}

/** Undefined if the model can't be installed; the bench then measures without it, and says so. */
export async function openVectors() {
  const { folder, model } = vectorsFolder()
  makeFolder(folder)
  try {
    if (!hasMinilm(model)) await installMinilm(model)
  } catch (error) {
    console.error(`routing: without embeddings. ${messageOf(error)}`)
    return undefined
  }
  const file = join(folder, 'vectors.bin')
  const vectors = readVectors(file)
  const vectorOf = (text: string) => vectors.get(keyOf(text).toString('hex'))

  async function complete(texts: Iterable<string>): Promise<void> {
    const missing = [...new Set(texts)].filter((text) => !vectorOf(text))
    if (missing.length === 0) return
    console.error(`routing: embedding ${missing.length} texts`)
    const embedder = new LocalEmbedder({ folder: model })
    for (let from = 0; from < missing.length; from += AT_ONCE) {
      const some = missing.slice(from, from + AT_ONCE)
      const made = await embedder.embed(some, new AbortController().signal)
      for (const [at, text] of some.entries()) {
        const vector = made[at] ?? new Float32Array(DIMENSIONS)
        vectors.set(keyOf(text).toString('hex'), vector)
        appendFileSync(file, Buffer.concat([keyOf(text), Buffer.from(vector.buffer)]))
      }
    }
    await embedder.close()
  }

  return {
    async similaritiesFor({ tools, requests }: RoutingSet): Promise<SimilaritiesOf> {
      const texts = tools.map((tool) => toolText(tool.server, tool))
      await complete([...texts, ...requests.flatMap(({ query }) => requestTexts(query))])
      const known = tools.map((tool, at) => {
        return { key: toolKey(tool.server, tool.name), vector: vectorOf(texts[at] ?? '') ?? new Float32Array() }
      })
      return (query) => {
        if (!isMostlyLatin(query)) return undefined
        const asked = requestTexts(query).map((text) => vectorOf(text) ?? new Float32Array())
        return new Map(known.map(({ key, vector }) => [key, similarity(asked, vector)]))
      }
    }
  }
}

export type Vectors = NonNullable<Awaited<ReturnType<typeof openVectors>>>
