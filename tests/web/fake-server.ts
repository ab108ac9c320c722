/**
 * Speaks the contract to a real page, with sessions that a test writes by hand: for what a real model and a real sandbox will not
 * do on demand (5,000 entries, 200 deltas a second, 10 MB of output, hostile names). Decides nothing, runs nothing.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server as SocketServer } from 'socket.io'
import type { EventData, EventType, SessionEvent } from '../../contract/events.ts'
import type { PathTarget } from '../../contract/path-target.ts'
import type { ApprovalCard, ClientRun, EntriesReply, ModelsReply, SessionSummary } from '../../contract/rest.ts'
import {
  applyEvent,
  type CallEntry,
  coveredCalls,
  emptyTranscript,
  pendingCalls,
  type Transcript
} from '../../contract/transcript.ts'
import { FakeAttachments } from './chat/fake-attachments.ts'
import { FakeEffects } from './effects/fake-effects.ts'
import { serveAsset } from './everywhere/serve-asset.ts'
import { serveFiles } from './files/fake-files.ts'
import { changeKey, type FakeProvider, fakeModels } from './models/fake-models.ts'
import { searched, summaryOf } from './sessions/fake-list.ts'

export const CSP =
  "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self' ws: wss:"

type Reply = (body: object) => void

type AskedCall = Pick<
  EventData<'tool:approval_required'>,
  'callId' | 'name' | 'args' | 'definitionChange' | 'target' | 'claims' | 'again' | 'ahead'
> & { server?: string; hash?: string }

type WrittenText = { callId: string; text: string }

export class FakeSession {
  readonly transcript: Transcript = emptyTranscript()
  readonly id: string
  /** Answers to the person's messages. */
  onMessage: (text: string, turnId: string) => void = () => {}
  /** Called when a card is approved. */
  onApproved: (callId: string, args: Record<string, unknown>) => void = () => {}
  /** Where the path of an edit leads. */
  onTarget: (args: Record<string, unknown>) => PathTarget | undefined = () => undefined
  /** The data that the page sent with its answers. */
  readonly answers: Record<string, unknown>[] = []
  /** Called for all other commands. */
  onCommand: (command: string, input: Record<string, unknown>) => void = () => {}
  /** The messages that get lost: the page's commands, or the answers to them. */
  loses: 'nothing' | 'answers' | 'commands' = 'nothing'
  /** Refuses every command. */
  refuses = false
  readonly refused: string[] = []
  /** Number of entries that are sent at once; the page requests older ones. */
  pageSize = Number.POSITIVE_INFINITY
  /** Hashes of the cards that were answered, in order. */
  readonly hashes: string[] = []
  /** Changes that a person has made in the list. */
  isDeleted = false
  marks: { title?: string; isPinned?: boolean; isArchived?: boolean } = {}
  activeAt = Date.now() - 120_000
  readonly #io: SocketServer
  readonly #written = new Map<string, number>()
  readonly attachments: FakeAttachments
  readonly effects = new FakeEffects()

  constructor(id: string, io: SocketServer, attachments: FakeAttachments) {
    this.id = id
    this.#io = io
    this.attachments = attachments
  }

  append<T extends EventType>(type: T, data: EventData<T>, options: { isLost?: boolean } = {}): void {
    const event = { type, seq: this.transcript.seq + 1, at: Date.now(), data } as SessionEvent
    applyEvent(this.transcript, event)
    if (!options.isLost) this.#io.to(this.id).emit(type, { ...data, seq: event.seq, at: event.at })
  }

  live(type: string, data: object): void {
    this.#io.to(this.id).emit(type, { ...(type === 'tool:output' && this.#placed(data as WrittenText)), ...data })
  }

  #placed({ callId, text }: WrittenText): { at: number } {
    const at = this.#written.get(callId) ?? 0
    this.#written.set(callId, at + text.length)
    return { at }
  }

  snapshot(): object {
    const state = { sandbox: 'running', recycleInMs: 840_000, network: 'none' }
    const { entries, olderBefore } = this.older(Number.POSITIVE_INFINITY)
    return {
      seq: this.transcript.seq,
      transcript: { ...this.transcript, entries },
      ...(olderBefore === null ? {} : { olderBefore }),
      pendingApprovals: pendingCalls(this.transcript),
      state
    }
  }

  older(before: number): EntriesReply {
    const all = this.transcript.entries.filter(({ seq }) => seq < before)
    const start = Math.max(0, all.length - this.pageSize)
    const entries = all.slice(start)
    return { entries, calls: this.transcript.calls, olderBefore: start === 0 ? null : (entries[0]?.seq ?? null) }
  }

  ask(turnId: string, calls: AskedCall[]): void {
    calls.forEach((call, at) => {
      this.append('tool:approval_required', {
        server: 'workspace',
        hash: `hash-${call.callId}`,
        ...call,
        turnId,
        definition: 'fake',
        queuePosition: at + 1,
        totalInQueue: calls.length
      })
    })
  }

  handle(command: string, input: Record<string, unknown>, reply: Reply): void {
    if (this.loses === 'commands') return
    if (this.refuses) {
      this.refused.push(command)
      return void reply({ ok: false, error: { code: 'too_fast', message: 'Too fast.' } })
    }
    const isKnown = this.transcript.entries.some((entry) => entry.kind === 'user' && entry.id === input.id)
    if (command === 'message' && this.transcript.turnId !== null && !isKnown) {
      const error = { code: 'turn_in_progress', message: 'Wait.' }
      return void (this.loses === 'nothing' && reply({ ok: false, error }))
    }
    const waiting = pendingCalls(this.transcript).length
    if (command === 'model:select' && waiting > Number(input.maxCancelled ?? waiting)) {
      const error = { code: 'approvals_waiting', message: `${waiting} calls wait for approval.` }
      return void reply({ ok: false, error })
    }
    if (command === 'turn:cancel' && this.transcript.turnId === null) {
      const error = { code: 'no_turn', message: 'There is nothing to stop.' }
      return void reply({ ok: false, error })
    }
    if (command === 'tool:target') {
      const target = this.onTarget(input.args as Record<string, unknown>)
      return void reply({ ok: true, ...(target && { target }) })
    }
    const error = this.effects.refuse(command, input)
    if (error) return void reply({ ok: false, error })
    if (this.loses === 'nothing') reply({ ok: true })
    this.effects.handle(this, command, input)
    if (command === 'message') {
      if (isKnown) return
      const turnId = `turn-${this.transcript.seq}`
      const attachments = this.attachments.lookUp(input.attachments ?? [])
      const files = attachments.length > 0 && { attachments }
      this.append('user:message', { turnId, text: String(input.text), id: String(input.id), ...files })
      this.onMessage(String(input.text), turnId)
    } else if (command === 'tool:approval') {
      const callId = String(input.callId)
      this.answers.push(input)
      const { approved, reason, args, choices } = input as EventData<'tool:approval_resolved'>
      const edit = {
        ...(reason && { reason }),
        ...(choices && { choices }),
        ...(args && { args }),
        ...(input.remember === true && { always: true as const })
      }
      const call = this.transcript.calls[callId]
      this.hashes.push(String(input.hash))
      this.append('tool:approval_resolved', { callId, approved, by: 'human', ...edit })
      if (approved) this.onApproved(callId, args ?? call?.args ?? {})
      if (call && input.remember === true) this.#allowAlways(call)
    } else if (command === 'tool:answer') {
      this.answers.push(input)
      const { callId, id, action } = input as EventData<'tool:question_answered'>
      this.append('tool:question_answered', { callId, id, action, by: 'human' })
    } else if (command === 'tool:revoke') {
      this.append('tool:allow_revoked', input as EventData<'tool:allow_revoked'>)
    } else if (command === 'turn:retry') {
      const turnId = `turn-${this.transcript.seq}`
      const from = Math.max(...this.transcript.entries.filter(({ kind }) => kind !== 'user').map(({ seq }) => seq))
      this.append('turn:reopened', { turnId, of: String(input.turnId), from })
      this.onMessage('', turnId)
    } else if (command === 'turn:cancel' && this.transcript.turnId) {
      this.append('turn:end', { turnId: this.transcript.turnId, reason: 'cancelled' })
    } else if (command === 'session:configure') {
      this.append('session:settings', input as EventData<'session:settings'>)
    } else if (command === 'model:select') {
      this.#endTurn(`The model was switched to ${input.model}.`)
      const history = input.history === 'keep' ? 'keep' : 'fresh'
      this.append('model:selected', { model: String(input.model), history })
      this.live('system:ready', { sessionId: this.id, provider: String(input.model).split('/')[0], model: input.model })
    } else if (command === 'session:snapshot') this.live('session:snapshot', this.snapshot())
    else this.onCommand(command, input)
  }

  #allowAlways(call: CallEntry): void {
    const { server, name, definition } = call
    this.append('tool:allowed', { server, name, definition })
    for (const { callId } of coveredCalls(this.transcript, call))
      this.append('tool:approval_resolved', { callId, approved: true, by: 'session' })
  }

  #endTurn(why: string): void {
    const { turnId } = this.transcript
    const waiting = pendingCalls(this.transcript)
    for (const { callId } of waiting)
      this.append('tool:approval_resolved', { callId, approved: false, by: 'cancel', reason: why })
    if (turnId) this.append('turn:end', { turnId, reason: 'cancelled' })
    const message = `${why} This cancelled ${waiting.length} calls that waited for approval.`
    if (waiting.length > 0) this.append('session:notice', { code: 'approvals_cancelled', message })
  }
}

export class FakeServer {
  readonly sessions = new Map<string, FakeSession>()
  readonly files = new Map<string, Buffer>()
  readonly folders = new Set<string>()
  readonly attachments = new FakeAttachments()
  /** Cards that wait in the inbox, and the ids of those that a page answered there. */
  approvals: ApprovalCard[] = []
  readonly answered: string[] = []
  /** Calls of which the page was sent only a part. */
  readonly wholeCalls = new Map<string, CallEntry>()
  /** Programs of outside clients. */
  runs: ClientRun[] = []
  /** The MCP servers and the keys of model providers that the page shows. */
  servers: object[] = []
  providers: FakeProvider[] = [{ id: 'anthropic', label: 'Anthropic', source: 'settings', ok: true, reason: null }]
  /** Further replies, by their paths. */
  readonly replies = new Map<string, object>()
  moreModels: ModelsReply['models'] = []
  /** Set up each session that a page opens. */
  onOpen: (session: FakeSession) => void = () => {}
  /** Refuse to let anyone in, with this code. */
  refuseWith: string | null = null
  /** Connections are admitted only when this has resolved. */
  gate: Promise<void> = Promise.resolve()
  readonly #http: Server
  readonly #io: SocketServer

  private constructor() {
    this.#http = createServer((request, response) => void this.#serve(request, response))
    this.#io = new SocketServer(this.#http)
    this.#io.use(async (_socket, next) => {
      await this.gate
      if (this.refuseWith === null) return next()
      next(Object.assign(new Error('refused'), { data: { code: this.refuseWith, message: 'You may not come in.' } }))
    })
    this.#io.on('connection', (socket) => {
      const session = this.session(String(socket.handshake.query.sessionId))
      void socket.join(session.id)
      const { model = session.transcript.model ?? 'demo/demo' } = socket.handshake.query
      socket.emit('system:ready', { sessionId: session.id, provider: String(model).split('/')[0], model })
      socket.emit('session:snapshot', session.snapshot())
      socket.onAny((command: string, input: Record<string, unknown>, reply: Reply) =>
        session.handle(command, input, reply)
      )
    })
  }

  static async start(): Promise<FakeServer> {
    const server = new FakeServer()
    await new Promise<void>((resolve) => server.#http.listen(0, '127.0.0.1', resolve))
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`
  }

  session(id: string): FakeSession {
    const known = this.sessions.get(id)
    if (known) return known
    const session = new FakeSession(id, this.#io, this.attachments)
    this.sessions.set(id, session)
    this.onOpen(session)
    return session
  }

  /** Cuts the connection silently, as a network does. */
  breakConnections(): void {
    for (const { conn } of this.#io.sockets.sockets.values()) conn.close()
  }

  /** Does what another tab would do. */
  delete(id: string): void {
    this.sessions.delete(id)
    this.#io.in(id).disconnectSockets(true)
  }

  /** Does what a server does when its store was emptied. */
  lose(id: string): void {
    this.sessions.delete(id)
    this.#io.in(id).emit('session:lost', { message: 'The server lost its state.' })
    this.#io.in(id).disconnectSockets(true)
  }

  async stop(): Promise<void> {
    await this.#io.close()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://x')
    response.setHeader('content-security-policy', CSP)
    if (url.pathname.includes('/attachments')) return void (await this.attachments.serve(request, response, url))
    const ofSession = this.sessions.get(url.pathname.split('/')[3] ?? '')
    if (ofSession?.effects.serve(response, url)) return
    const body = this.#api(request, url) ?? (await this.#change(request, url))
    if (body !== undefined) return void response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
    if (await serveFiles(this.files, this.folders, request, response)) return
    await serveAsset(url.pathname, request, response)
  }

  async #change(request: IncomingMessage, { pathname }: URL): Promise<object | undefined> {
    const [, id = '', restore] = /^\/api\/sessions\/([^/]+)(\/restore)?$/.exec(pathname) ?? []
    const session = this.sessions.get(id)
    if (!session) return undefined
    if (request.method === 'DELETE' || restore) session.isDeleted = request.method === 'DELETE'
    if (request.method === 'PATCH') {
      Object.assign(session.marks, JSON.parse(Buffer.concat(await request.toArray()).toString()))
      this.tell(session.id)
    }
    return summaryOf(session)
  }

  #api({ method }: IncomingMessage, { pathname, searchParams }: URL): object | undefined {
    if (pathname === '/api/owner') return { isKnown: true }
    if (pathname === '/readyz' || pathname === '/healthz') return { ok: true }
    if (pathname.startsWith('/api/models')) return fakeModels(this.moreModels)
    if (pathname === '/api/search') return searched([...this.sessions.values()], searchParams)
    if (this.replies.has(pathname)) return this.replies.get(pathname)
    if (pathname === '/api/servers')
      return { admin: 'allowed', file: null, problem: null, servers: this.servers, problems: [], exposure: null }
    if (pathname.startsWith('/api/providers/')) return changeKey(this.providers, method, pathname)
    if (pathname === '/api/providers') return { admin: 'allowed', providers: this.providers }
    if (pathname === '/api/instructions') return { text: 'Be brief.' }
    if (pathname === '/api/approvals') return { approvals: this.approvals, now: Date.now() }
    if (pathname.startsWith('/api/approvals/')) return { count: this.answered.push(pathname.split('/').at(-1) ?? '') }
    if (pathname === '/api/runs') return { runs: this.runs, now: Date.now() }
    if (pathname.startsWith('/api/runs/')) {
      this.runs = this.runs.filter(({ runId }) => runId !== pathname.split('/')[3])
      return {}
    }
    if (pathname === '/api/sessions' && method === 'GET') {
      const title = (searchParams.get('title') ?? '').toLowerCase()
      const isWaiting = searchParams.get('waiting') === 'true'
      const archived = searchParams.get('archived') ?? (isWaiting ? 'any' : 'false')
      const all = this.#summaries().filter(
        (each) =>
          each.title.toLowerCase().includes(title) &&
          (!isWaiting || each.pendingApprovals > 0 || each.questions || each.review) &&
          (archived === 'any' || archived === String(each.isArchived))
      )
      const waitingCalls = all.reduce((sum, { pendingApprovals }) => sum + pendingApprovals, 0)
      const from = Number(searchParams.get('before') ?? 0)
      const end = from + Number(searchParams.get('limit') ?? all.length)
      return {
        sessions: all.slice(from, end),
        next: end < all.length ? String(end) : null,
        total: all.length,
        waitingCalls
      }
    }
    if (pathname === '/api/sessions' && method === 'DELETE') {
      this.sessions.clear()
      return {}
    }
    const [, ofCall, callId = ''] = /^\/api\/sessions\/([^/]+)\/calls\/([^/]+)$/.exec(pathname) ?? []
    if (ofCall) return this.wholeCalls.get(callId) ?? this.session(ofCall).transcript.calls[callId]
    const ofEntries = /^\/api\/sessions\/([^/]+)\/entries$/.exec(pathname)?.[1]
    if (ofEntries) return this.session(ofEntries).older(Number(searchParams.get('before')))
    return undefined
  }

  /** Tells every page what the list shows about a session, as a server does when something changed there. */
  tell(id: string): void {
    const session = this.sessions.get(id)
    this.#io.emit('session:changed', { sessionId: id, summary: session ? summaryOf(session) : null })
  }

  tellInbox(): void {
    this.#io.emit('inbox:changed', { ids: this.approvals.map(({ id }) => id) })
  }

  #summaries(): SessionSummary[] {
    return [...this.sessions.values()].filter(({ isDeleted }) => !isDeleted).map(summaryOf)
  }
}
