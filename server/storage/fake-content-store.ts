import { createHash } from 'node:crypto'
import type { ContentStore } from './checkpoint-store.ts'

export class FakeContentStore implements ContentStore {
  readonly #contents = new Map<string, Buffer>()

  async putContent(sessionId: string, bytes: Uint8Array): Promise<string> {
    const hash = createHash('sha256').update(bytes).digest('hex')
    this.#contents.set(`${sessionId} ${hash}`, Buffer.from(bytes))
    return hash
  }

  async getContent(sessionId: string, hash: string): Promise<Buffer | undefined> {
    return this.#contents.get(`${sessionId} ${hash}`)
  }

  async removeContent(sessionId: string, hash: string): Promise<void> {
    this.#contents.delete(`${sessionId} ${hash}`)
  }
}
