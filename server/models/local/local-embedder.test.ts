import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { PATIENCE_MS } from '../../../tests/support/patience-ms.ts'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { LocalEmbedder, type LocalEmbedderOptions } from './local-embedder.ts'
import { MINILM_FILES, verifyMinilm } from './minilm-files.ts'

const signal = new AbortController().signal
const open: LocalEmbedder[] = []
afterEach(async () => {
  for (const embedder of open.splice(0)) await embedder.close()
})

/** A thread that answers with a number of its own and the number of its variables, or does what the text says. */
const SOURCE = `
const { parentPort } = require('node:worker_threads')
const own = Math.random()
parentPort.on('message', ({ id, texts }) => {
  if (texts[0] === 'hang') for (;;) {}
  if (texts[0] === 'exit') process.exit(3)
  if (texts[0] === 'fail') return parentPort.postMessage({ id, error: 'unreachable' })
  if (texts[0] === 'short') return parentPort.postMessage({ id, vectors: [] })
  parentPort.postMessage({ id, vectors: texts.map(() => Float32Array.of(own, Object.keys(process.env).length)) })
})`

function embedder(options: Partial<LocalEmbedderOptions> = {}): LocalEmbedder {
  const made = new LocalEmbedder({ folder: '/nowhere', thread: { source: SOURCE }, ...options })
  open.push(made)
  return made
}

it('starts one thread with the first text, without our variables, and ends it when idle', async () => {
  const local = embedder({ idleMs: 20 })
  expect(local.isLoaded).toBe(false)
  const [first, second] = await Promise.all([local.embed(['a', 'b'], signal), local.embed(['c'], signal)])
  expect(first).toHaveLength(2)
  expect(second[0]).toEqual(first[0])
  expect(first[0]?.[1]).toBe(0)
  await vi.waitFor(() => expect(local.isLoaded).toBe(false), PATIENCE_MS)
  const [again] = await local.embed(['d'], signal)
  expect(again?.[0]).not.toBe(first[0]?.[0])
})

describe('a thread in trouble', () => {
  it.each(['exit', 'fail'])('fails what waits for it (%s), and the next text gets another one', async (text) => {
    const local = embedder()
    const [before] = await local.embed(['a'], signal)
    const failed = [local.embed([text], signal), local.embed(['behind'], signal)]
    const [first] = await Promise.allSettled(failed)
    expect(first).toMatchObject({ status: 'rejected', reason: { code: 'embeddings_failed' } })
    const [after] = await local.embed(['b'], signal)
    expect(after?.[0]).not.toBe(before?.[0])
  })

  it('is ended if it does not answer', async () => {
    const local = embedder({ stuckMs: 1000 })
    await expect(local.embed(['hang'], signal)).rejects.toThrow(/did not answer/)
    expect(local.isLoaded).toBe(false)
    // On a busy machine, the next one may need several tries to start in time.
    await vi.waitFor(async () => expect(await local.embed(['b'], signal)).toHaveLength(1), PATIENCE_MS)
  })

  it('is not believed if it sends fewer vectors than texts', async () => {
    await expect(embedder().embed(['short'], signal)).rejects.toMatchObject({ code: 'embeddings_failed' })
  })
})

it('refuses texts after it was closed, and fails those that wait', async () => {
  const local = embedder()
  const waiting = local.embed(['hang'], signal)
  const refused = expect(waiting).rejects.toMatchObject({ code: 'embeddings_failed' })
  await local.close()
  await refused
  await expect(local.embed(['a'], signal)).rejects.toMatchObject({ code: 'embeddings_failed' })
})

// Checked: without the comparison in the thread, the replaced file runs.
it('runs no file that is not the pinned one', async () => {
  const folder = temporaryFolder()
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const { path } of Object.values(MINILM_FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), 'process.exit(7)')
  }
  const local = new LocalEmbedder({ folder })
  open.push(local)
  await expect(local.embed(['a'], signal)).rejects.toThrow(/engine\.cjs is not the expected file/)
  await expect(verifyMinilm(folder)).rejects.toMatchObject({ code: 'embeddings_damaged' })
})
