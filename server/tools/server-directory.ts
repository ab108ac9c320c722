/**
 * The registry's servers as a person manages them: how each is, what it has, and adding, testing, switching and removing it. Owns
 * no state but the file's. Invariant: nothing is added that was not shown before, word for word, to whoever adds it.
 */
import { createHmac, randomBytes } from 'node:crypto'
import type {
  AddedReply,
  PlanReply,
  ServerDetail,
  ServerProblem,
  ServerSummary,
  ServersAdmin,
  ServersReply,
  TestReply
} from '../../contract/servers.ts'
import { canonicalJson, offerTools } from '../calls/offered-tool.ts'
import { describeTarget, showTarget } from '../catalog/describe-target.ts'
import { addServers, removeServer, switchServer } from '../catalog/edit-registry.ts'
import { type Grants, grantHash } from '../catalog/grants.ts'
import { storeSecrets, takeSecretsOut } from '../catalog/import/move-secrets.ts'
import { planServers, type ServersPlan } from '../catalog/import/plan-servers.ts'
import { readEntry } from '../catalog/read-entry.ts'
import type { Registry, RegistryProblem } from '../catalog/registry.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { type Connections, unknownServer } from '../connections/connections.ts'
import { AppError, messageOf } from '../lib/errors.ts'
import type { ApprovalPolicy } from '../policy/approval-policy.ts'
import type { DefinitionGuard } from '../policy/definition-guard.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import { serverHealth } from './server-health.ts'
import type { ToolIndex } from './tool-index.ts'

export interface ServerDirectoryOptions {
  file: string
  keyValues: Pick<KeyValueStore, 'get' | 'add'>
  registry(): Registry
  /** Why the file as it stands can't be used. */
  problem(): string | undefined
  /** Applies what stands in the file now. */
  reload(): Promise<void>
  core(): Promise<{ index: ToolIndex; connections: Connections; policy: ApprovalPolicy }>
  /** The chat's. */
  policy: ApprovalPolicy
  guard: DefinitionGuard
  grants: Pick<Grants, 'accept' | 'isWaiting'>
  credentialsFile?: string | undefined
  /** The end of what a server wrote to stderr. */
  log(server: string, owner: string): Promise<string>
}

export interface AddRequest {
  text: string
  moveSecrets?: boolean | undefined
  confirm?: string | undefined
}

const KEYS = 'gateway-keys'
const HIDDEN_TARGET = { target: null, cwd: null, env: [], headers: [], sandbox: null, log: null, hash: null }

export class ServerDirectory {
  readonly #options: ServerDirectoryOptions

  constructor(options: ServerDirectoryOptions) {
    this.#options = options
  }

  /** `admin`: what whoever asks may do. Others than administrators see no command, address or path. */
  async list(admin: ServersAdmin = 'allowed'): Promise<ServersReply> {
    const { file, registry, problem } = this.#options
    const { servers, problems } = registry()
    const isAdmin = admin === 'allowed'
    const summaries = await Promise.all([...servers.values()].map((entry) => this.#summary(entry)))
    return {
      admin,
      file: isAdmin ? file : null,
      // Both quote the file.
      problem: isAdmin ? (problem() ?? null) : null,
      servers: isAdmin ? summaries : summaries.map((summary) => ({ ...summary, target: null })),
      problems: isAdmin ? problems.map(shownProblem) : [],
      exposure: isAdmin ? ((await this.#exposure(servers)) ?? null) : null
    }
  }

  /** Of no interest where every server is remote or in a sandbox. */
  async #exposure(servers: Registry['servers']): Promise<string | undefined> {
    const isExposed = [...servers.values()].some((entry) => entry.kind === 'local' && entry.enabled && !entry.sandbox)
    return isExposed ? (await this.#options.core()).connections.exposure() : undefined
  }

  /** `owner`: who asks. What servers wrote for another is not theirs to see. */
  async detail(name: string, owner: string, admin: ServersAdmin = 'allowed'): Promise<ServerDetail> {
    const entry = this.#entry(name)
    const { index } = await this.#options.core()
    const { tools, ...summary } = await this.#summary(entry)
    const shown = {
      ...summary,
      ...showTarget(entry),
      tools: tools.map((tool) => ({ ...tool, description: index.tool(name, tool.name)?.description ?? '' }))
    }
    if (admin !== 'allowed') return { ...shown, ...HIDDEN_TARGET }
    return { ...shown, hash: grantHash(entry), log: await this.#options.log(name, owner) }
  }

  /** Without the right `confirm` it only says what would be added. */
  async add(wish: AddRequest): Promise<PlanReply | AddedReply> {
    const { file, credentialsFile } = this.#options
    const { confirm } = wish
    const { plan, secrets } = this.#plan(wish)
    const hash = createHmac('sha256', await this.#key())
      .update(canonicalJson([plan.raw, [...secrets]]))
      .digest('base64url')
    if (confirm === undefined) {
      return {
        confirm: plan.servers.length > 0 ? hash : null,
        servers: plan.servers,
        problems: plan.problems.map(shownProblem),
        canMoveSecrets: credentialsFile !== undefined
      }
    }
    if (confirm !== hash || plan.servers.length === 0) {
      const message = 'What would be added is not what was shown: look at it again, and confirm that.'
      throw new AppError('conflict', 'confirmation_stale', message)
    }
    if (credentialsFile && secrets.size > 0) await storeSecrets(credentialsFile, secrets)
    await addServers(file, plan.raw)
    const added = Object.entries(plan.raw).map(([name, raw]) => readEntry(name, raw, 0))
    await this.#options.grants.accept(added, this.#options.registry().servers.values())
    await this.#options.reload()
    return { added: Object.keys(plan.raw) }
  }

  /** Starts it if need be, and asks it for its tools: that it runs is not enough. */
  async test(name: string, owner: string, signal: AbortSignal): Promise<TestReply> {
    if (!this.#entry(name).enabled) throw new AppError('conflict', 'server_off', `Switch "${name}" on to test it.`)
    const { connections } = await this.#options.core()
    const began = performance.now()
    const reply = (tools: number, reason: string | null) => {
      return { ok: reason === null, ms: Math.round(performance.now() - began), tools, reason }
    }
    try {
      const tools = await connections.test(name, { caller: { owner, door: 'http' }, signal })
      return reply(tools.length, tools.length === 0 ? 'It runs, but has no tools.' : null)
    } catch (error) {
      return reply(0, messageOf(error))
    }
  }

  async switch(name: string, on: boolean): Promise<void> {
    this.#entry(name)
    await switchServer(this.#options.file, name, on)
    await this.#options.reload()
  }

  /** Gives an entry its secrets, if it still is what was shown. */
  async accept(name: string, hash: unknown): Promise<void> {
    const entry = this.#entry(name)
    if (hash !== grantHash(entry)) {
      const message = 'The entry is not what was shown: look at it again, and accept that.'
      throw new AppError('conflict', 'confirmation_stale', message)
    }
    await this.#options.grants.accept([entry])
  }

  /** Also one whose entry can't be read. */
  async remove(name: string): Promise<void> {
    await removeServer(this.#options.file, name)
    await this.#options.reload()
  }

  /**
   * Only who has read our answer can confirm it; a page elsewhere can make a browser send, but not read. All instances of a store
   * have one key: the yes may come to another than the one that answered.
   */
  async #key(): Promise<string> {
    const { keyValues } = this.#options
    const known = await keyValues.get(KEYS, 'server-plans')
    if (typeof known === 'string') return known
    const fresh = randomBytes(32).toString('base64url')
    return (await keyValues.add(KEYS, 'server-plans', fresh))
      ? fresh
      : String(await keyValues.get(KEYS, 'server-plans'))
  }

  #plan({ text, moveSecrets }: AddRequest): { plan: ServersPlan; secrets: Map<string, string> } {
    const { registry, credentialsFile } = this.#options
    const { servers, problems } = registry()
    const plan = planServers(text, (name) => {
      return servers.has(name) || problems.some(({ server, fatal }) => fatal && server === name)
    })
    if (!moveSecrets || credentialsFile === undefined) return { plan, secrets: new Map() }
    const moved = takeSecretsOut(plan.raw)
    const shown = planServers(JSON.stringify({ mcpServers: moved.servers }), () => false)
    return { plan: { ...shown, problems: plan.problems }, secrets: moved.secrets }
  }

  #entry(name: string): ServerEntry {
    const entry = this.#options.registry().servers.get(name)
    if (entry) return entry
    throw unknownServer(name)
  }

  async #summary(entry: ServerEntry): Promise<ServerSummary> {
    const { name, kind, enabled } = entry
    const { index, connections, policy } = await this.#options.core()
    const record = index.record(name)
    const state = connections.state(name)
    const tools = enabled ? (record?.tools ?? []) : []
    const changed = await this.#changed(name, tools)
    return {
      name,
      kind,
      target: describeTarget(entry),
      enabled,
      ...serverHealth(enabled, record, state),
      isWaiting: this.#options.grants.isWaiting(entry),
      state: state?.state ?? 'stopped',
      tools: tools.map((tool) => ({
        name: tool.name,
        verdict: this.#options.policy(name, tool.name),
        outside: policy(name, tool.name),
        changed: changed.has(tool.name)
      })),
      seenAt: record?.seenAt || null,
      startMs: record?.startMs ?? null,
      startedAt: state?.startedAt ?? null,
      calls: connections.calls(name),
      processes: state?.instances.filter(({ pid }) => pid !== undefined).length ?? 0
    }
  }

  async #changed(server: string, tools: StoredTool[]): Promise<Set<string>> {
    const offered = offerTools(server, tools, new Set())
    const changes = await this.#options.guard.changes(offered)
    return new Set(offered.filter(({ modelName }) => changes.has(modelName)).map(({ name }) => name))
  }
}

function shownProblem({ server, line, reason, fatal }: RegistryProblem): ServerProblem {
  return { server: server ?? null, line, reason, fatal }
}
