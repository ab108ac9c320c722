/** Collects entries for a container and sends many at once. While the container writes some, the next are read and sent. */
import type { RestoredEntry, RestoreParams, RestoreResult } from '../../../../workspace-server/protocol.ts'
import type { WorkspaceConnection } from '../../../sandbox/port.ts'

const BATCH_BYTES = 2 * 1024 * 1024
const BATCH_ENTRIES = 2000
const MAX_IN_FLIGHT = 2
const TOO_OLD =
  'The sandbox was started by an earlier version of this program. It is replaced after a while without use.'

export class RestoreBatch {
  readonly failed: RestoreResult['failed'] = []
  readonly #connection: WorkspaceConnection
  readonly #isOwnVersion: boolean
  #entries: RestoredEntry[] = []
  #content: Uint8Array[] = []
  #deleted: string[] = []
  #bytes = 0
  #inFlight: Promise<void>[] = []

  /** A container that was created by another version of this program gets content in the form that all versions know. */
  constructor(connection: WorkspaceConnection, isOwnVersion: boolean) {
    this.#connection = connection
    this.#isOwnVersion = isOwnVersion
  }

  async add(entry: RestoredEntry, content?: Uint8Array): Promise<void> {
    const { length = 0 } = content ?? {}
    await this.#makeRoom(entry.path.length + 200 + (this.#isOwnVersion ? length : (length * 4) / 3))
    if (!content) this.#entries.push(entry)
    else if (this.#isOwnVersion) {
      this.#entries.push({ ...entry, bytes: length })
      this.#content.push(content)
    } else this.#entries.push({ ...entry, data: Buffer.from(content).toString('base64') })
  }

  /** Call this before any `add`. */
  async remove(path: string): Promise<void> {
    await this.#makeRoom(path.length + 10)
    this.#deleted.push(path)
  }

  /** Resolves when everything is written. */
  async finish(): Promise<void> {
    await this.#flush()
    await Promise.all(this.#inFlight)
  }

  async #makeRoom(bytes: number): Promise<void> {
    const count = this.#entries.length + this.#deleted.length
    if (this.#bytes + bytes > BATCH_BYTES || count === BATCH_ENTRIES) await this.#flush()
    this.#bytes += bytes
  }

  async #flush(): Promise<void> {
    const [entries, deleted, content] = [this.#entries, this.#deleted, this.#content]
    if (entries.length + deleted.length === 0) return
    this.#entries = []
    this.#deleted = []
    this.#content = []
    this.#bytes = 0
    while (this.#inFlight.length >= MAX_IN_FLIGHT) await this.#inFlight.shift()
    const sent = this.#send({
      entries,
      ...(deleted.length > 0 && { deleted }),
      ...(content.length > 0 && { content: Buffer.concat(content) })
    })
    // Callers that wait for it get the error.
    sent.catch(() => {})
    this.#inFlight.push(sent)
  }

  async #send(params: RestoreParams): Promise<void> {
    const { failed, removed } = await this.#connection.restore(params)
    this.failed.push(...failed)
    // A server of an earlier version of this program would keep the files, and we would not.
    if (params.deleted && removed === undefined) this.failed.push({ path: '', reason: TOO_OLD, noRoom: false })
  }
}
