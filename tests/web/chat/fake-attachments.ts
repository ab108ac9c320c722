/** The attachments of a fake server: the server's own code, on a store in memory. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Attachment, AttachmentInput } from '../../../contract/attachments.ts'
import type { StoredFile } from '../../../contract/stored-files.ts'
import { readFile, storeFile } from '../../../server/sessions/attachments/stored-file.ts'
import { FakeContentStore } from '../../../server/storage/fake-content-store.ts'

export class FakeAttachments {
  /** The uploaded files, in order. */
  readonly uploads: StoredFile[] = []
  /** Uploads wait for it. */
  gate: Promise<void> = Promise.resolve()
  /** Refuses uploads with this sentence. */
  refusal: string | null = null
  readonly #contents = new FakeContentStore()

  lookUp(inputs: unknown): Attachment[] {
    const found = (id: string | undefined) => this.uploads.find((file) => file.id === id)
    return (inputs as AttachmentInput[]).flatMap(({ id, name, view }) => {
      const [file, smaller] = [found(id), found(view)]
      return file ? [{ ...file, name, ...(smaller && { view: smaller }) }] : []
    })
  }

  async add(bytes: Buffer): Promise<StoredFile> {
    const stored = await storeFile(this.#contents, '', bytes)
    this.uploads.push(stored)
    return stored
  }

  isStored = async (id: string) => (await this.#contents.getContent('', id)) !== undefined

  async serve(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    if (request.method === 'POST') {
      const bytes = await buffer(request)
      await this.gate
      const error = { code: 'refused', message: this.refusal }
      if (this.refusal !== null) return void response.writeHead(413).end(JSON.stringify({ error }))
      return void response.writeHead(201).end(JSON.stringify(await this.add(bytes)))
    }
    if (request.method === 'DELETE') {
      await this.#contents.removeContent('', url.pathname.split('/').at(-1) ?? '')
      return void response.writeHead(204).end()
    }
    const found = await readFile(this.#contents, '', url.pathname.split('/').at(-1) ?? '')
    if (!found) return void response.writeHead(404).end('{}')
    response.setHeader('content-type', found.file.mediaType).end(found.bytes)
  }
}
