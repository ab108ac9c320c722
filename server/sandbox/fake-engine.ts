/** An engine for unit tests: containers are objects and their files are a map. Tests switch faults on. */
import { createHash, randomUUID } from 'node:crypto'
import type {
  ChangesResult,
  FetchResult,
  FileChange,
  FileChangeResult,
  LimitsResult,
  PathTarget,
  RestoreParams,
  RestoreResult,
  WorkspaceEntry
} from '../../workspace-server/protocol.ts'
import { AppError } from '../lib/errors.ts'
import type { ContainerState, SandboxEngine, SandboxOwner, ToolResult, WorkspaceConnection } from './port.ts'

const LIMITS = { uid: 20_000, capabilities: '0' } as LimitsResult

export class FakeContainer {
  readonly id = randomUUID()
  readonly files = new Map<string, string>()
  readonly owner: SandboxOwner
  state: ContainerState = { running: true, paused: false, oomKilled: false, exitCode: 0 }
  epoch = 0
  tampered = false
  /** Leftovers of commands: processes, by name, and files outside of the workspace. */
  readonly left = new Set<string>()
  isFull = false
  connection: FakeConnection | undefined

  constructor(owner: SandboxOwner) {
    this.owner = owner
  }

  die(): void {
    this.state = { running: false, paused: false, oomKilled: false, exitCode: 137 }
    void this.connection?.close()
  }
}

export class FakeConnection implements WorkspaceConnection {
  readonly #container: FakeContainer
  readonly #closed = Promise.withResolvers<void>()
  #reported = new Map<string, string>()
  #seq = 0
  isOpen = true

  constructor(container: FakeContainer) {
    this.#container = container
  }

  get containerId(): string {
    return this.#container.id
  }

  get closed(): Promise<void> {
    return this.#closed.promise
  }

  get isTampered(): boolean {
    return this.#container.tampered
  }

  async listTools() {
    return [{ name: 'write_file', inputSchema: {} }]
  }

  async callTool(name: string, args: Record<string, unknown>): Promise<ToolResult> {
    if (!this.isOpen) throw new AppError('unavailable', 'connection_lost', 'gone', { details: { sent: false } })
    if (name === 'write_file') this.#container.files.set(String(args.path), String(args.content))
    return { content: [{ type: 'text', text: this.#container.files.get(String(args.path)) ?? '' }] }
  }

  async claim(epoch: number): Promise<void> {
    this.#container.epoch = epoch
  }

  async limits(): Promise<LimitsResult> {
    return LIMITS
  }

  async reach(): Promise<number[]> {
    return []
  }

  async changes(): Promise<ChangesResult> {
    const { files } = this.#container
    const put = [...files]
      .filter(([path, text]) => this.#reported.get(path) !== text)
      .map(([path, text]) => asEntry(path, text))
    const deleted = [...this.#reported.keys()].filter((path) => !files.has(path))
    this.#reported = new Map(files)
    return { seq: ++this.#seq, put, deleted, skipped: [], more: false }
  }

  async fetch(): Promise<FetchResult> {
    return { data: '', holes: [], eof: true }
  }

  async restore({ deleted = [], entries, content = new Uint8Array() }: RestoreParams): Promise<RestoreResult> {
    if (this.#container.isFull) return { failed: entries.map(({ path }) => ({ path, reason: 'full', noRoom: true })) }
    for (const path of deleted) this.#container.files.delete(path)
    let at = 0
    for (const { path, type, data = '', bytes } of entries) {
      const own = bytes === undefined ? Buffer.from(data, 'base64') : content.subarray(at, at + bytes)
      at += bytes ?? 0
      if (type === 'file') this.#container.files.set(path, Buffer.from(own).toString())
    }
    this.#reported = new Map(this.#container.files)
    return { failed: [], removed: deleted.length }
  }

  async resolve(paths: string[]): Promise<PathTarget[]> {
    const { files } = this.#container
    return paths.map((path) => ({ path: `/workspace/${path}`, is: files.has(path) ? 'file' : 'new' }))
  }

  async change(change: FileChange): Promise<FileChangeResult> {
    const { files } = this.#container
    if (change.kind === 'delete') files.delete(change.path)
    if (change.kind === 'write') files.set(change.path, Buffer.from(change.data, 'base64').toString())
    return {}
  }

  async tidy(): Promise<boolean> {
    this.#container.left.clear()
    return true
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {
    this.isOpen = false
    this.#closed.resolve()
  }
}

function asEntry(path: string, text: string): WorkspaceEntry & { data: string } {
  const hash = createHash('sha256').update(text).digest('hex')
  const size = Buffer.byteLength(text)
  return { path, type: 'file', mode: 0o644, mtimeMs: 0, size, hash, data: Buffer.from(text).toString('base64') }
}

export class FakeEngine implements SandboxEngine {
  isShared = false
  readonly swept: string[] = []
  readonly containers = new Map<string, FakeContainer>()
  /** Containers created while this is set have no room for files. */
  isFull = false
  /** Thrown by `create` while set. */
  createFails: Error | undefined
  /** While set, the image is being built and there are no new containers. */
  build: Promise<void> | undefined
  /** Thrown by `verifyLimits` while set. */
  limitsFail: Error | undefined

  async status() {
    return {
      name: 'Fake',
      version: 'fake',
      runtimes: [],
      cgroupVersion: '2',
      containers: this.containers.size,
      remapsUsers: false
    }
  }

  async ensureImage(): Promise<string> {
    return 'fake'
  }

  async hasImage(): Promise<boolean> {
    return true
  }

  async waitForBuild(): Promise<boolean> {
    const { build } = this
    await build?.catch(() => {})
    return build !== undefined
  }

  async create(owner: SandboxOwner): Promise<string> {
    if (this.build) throw new AppError('unavailable', 'image_missing', 'The sandbox image is being built.')
    if (this.createFails) throw this.createFails
    const container = new FakeContainer(owner)
    container.isFull = this.isFull
    this.containers.set(container.id, container)
    return container.id
  }

  async connect(containerId: string, epoch: number): Promise<WorkspaceConnection> {
    const container = this.containers.get(containerId)
    if (!container?.state.running) throw new AppError('unavailable', 'container_gone', 'gone')
    if (epoch < container.epoch) throw new AppError('conflict', 'stale_epoch', 'stale')
    await container.connection?.close()
    container.epoch = epoch
    container.state.paused = false
    container.connection = new FakeConnection(container)
    return container.connection
  }

  async inspect(containerId: string): Promise<ContainerState | null> {
    return this.containers.get(containerId)?.state ?? null
  }

  async pause(containerId: string): Promise<void> {
    const container = this.containers.get(containerId)
    if (container) container.state.paused = true
  }

  async unpause(containerId: string): Promise<void> {
    const container = this.containers.get(containerId)
    if (container) container.state.paused = false
  }

  async remove(containerId: string): Promise<boolean> {
    await this.containers.get(containerId)?.connection?.close()
    return this.containers.delete(containerId)
  }

  async sweep(deployment: string): Promise<void> {
    this.swept.push(deployment)
  }

  async list(deployment: string, instance?: string) {
    return [...this.containers.values()]
      .filter(({ owner }) => owner.deployment === deployment && (instance ?? owner.instance) === owner.instance)
      .map(({ id, owner }) => ({ id, instance: owner.instance, createdAt: 0 }))
  }

  async verifyLimits(): Promise<LimitsResult> {
    if (this.limitsFail) throw this.limitsFail
    return LIMITS
  }

  async close(): Promise<void> {}
}
