/**
 * The session of this tab: its connection, its state, and its transcript. It decides nothing and shows what the server said last.
 */
import { defineStore } from 'pinia'
import { computed, ref, shallowRef, toRaw, watch } from 'vue'
import type { Ack, CommandInput, CommandName } from '../../contract/commands.ts'
import type { SessionEvent } from '../../contract/events.ts'
import type { Progress, Ready, SessionState, Snapshot } from '../../contract/live.ts'
import type { WaitingQuestion } from '../../contract/rest.ts'
import { openQuestions, pendingCalls, undecidedCalls } from '../../contract/transcript.ts'
import { ApiError, api, becomeOwner, forgetOwner, OWNER_PROBLEMS, takeOwnerNews } from '../api.ts'
import { newId } from '../new-id.ts'
import { bindNews } from '../news.ts'
import { isStored } from '../owner-proof.ts'
import { recall, remember } from '../remembered.ts'
import { addressSession } from '../session-address.ts'
import { command, openSocket, type PageSocket } from '../socket.ts'
import { preparationWords } from '../text/preparation-words.ts'
import { useCallViews } from './call-views.ts'
import { useNotices } from './notices.ts'
import { useOutputs } from './outputs.ts'
import { useStream } from './stream.ts'
import { syncedTranscript } from './synced-transcript.ts'
import { useTalks } from './talks/talks.ts'

export type Phase = 'connecting' | 'open' | 'unauthorized' | 'forbidden' | 'refused'
export type Activity = 'idle' | 'thinking' | 'answering' | 'running' | 'waiting' | 'reconnecting'

type Refusal = Error & { data?: { code?: string; message?: string; retryAfterSeconds?: number } }

const RETRY_AFTER_MS = 3000
const OWNER_LOST =
  'This browser no longer has the cookie that goes with this page, or another program on this host has replaced it. Sessions from before are not shown.'
const NOTHING_STORED =
  'This browser stores nothing for this page (private mode, or site data is blocked), so your sessions are lost after a reload.'
const LOST_AFTER_MS = 500
/** The model that the person chose last: new sessions begin with it. */
export const LAST_MODEL = 'model'
const SESSION_LOST = 'The server lost its state, and this conversation with it. Here is a new session.'

export const useSession = defineStore('session', () => {
  const outputs = useOutputs()
  const views = useCallViews()
  const stream = useStream()
  const talks = useTalks()
  const notices = useNotices()
  const sessionId = ref('')
  /** The last session that was deleted while it was open; its draft moves to the next session. */
  const deletedId = ref('')
  const phase = ref<Phase>('connecting')
  const refusal = ref('')
  const connected = ref(false)
  /** Disconnected for long enough to show a banner; not while changing sessions or for short breaks. */
  const isLost = ref(false)
  const progress = ref<Progress | null>(null)
  const preparation = computed(() => preparationWords(progress.value))
  const ready = ref<Ready | null>(null)
  const state = ref<SessionState & { at: number }>({ sandbox: 'none', recycleInMs: null, network: 'none', at: 0 })
  /** Whether there is no sandbox, and none can be created yet. */
  const isSandboxMissing = computed(
    () => preparation.value !== null && ['none', 'recycled'].includes(state.value.sandbox)
  )
  /** Whether `state` and `transcript` belong to the open session. */
  const isKnown = ref(false)
  const socket = shallowRef<PageSocket | null>(null)
  const listeners = new Set<(event: SessionEvent) => void>()
  const log = syncedTranscript(sessionId, {
    applied(event) {
      if (
        event.type === 'agent:response' ||
        event.type === 'turn:end' ||
        event.type === 'user:message' ||
        event.type === 'turn:reopened'
      )
        stream.end()
      for (const listener of listeners) listener(event)
    },
    replaced: () => stream.end(),
    missed: () => void requestSnapshot(socket.value)
  })
  const { transcript, version, olderBefore, loadOlder } = log
  /** The person is deleting this session, so the server's disconnect is expected. */
  let isDeleting = false

  const pendingIds = computed(() => {
    void version.value
    return pendingCalls(toRaw(transcript.value)).map(({ callId }) => callId)
  })
  /** Questions of MCP servers that wait for an answer. */
  const questions = computed((): WaitingQuestion[] => {
    void version.value
    return openQuestions(toRaw(transcript.value)).map(({ call: { callId, server, name }, question: { id, at } }) => ({
      ...{ callId, id, server, name, at }
    }))
  })
  const pending = computed(() => pendingIds.value.flatMap((id) => transcript.value.calls[id] ?? []))
  /** The call that runs in a fork. The others wait until it is decided. */
  const previewing = computed(() => {
    void version.value
    const first = undecidedCalls(toRaw(transcript.value)).find(({ ahead }) => ahead === 'preview')
    return first && !pendingIds.value.includes(first.callId) ? first : undefined
  })
  const runningCall = computed(() => {
    void version.value
    const { entries, calls } = toRaw(transcript.value)
    const sinceMessage = entries.slice(entries.findLastIndex(({ kind }) => kind === 'user') + 1)
    return sinceMessage
      .flatMap((entry) => (entry.kind === 'call' ? (calls[entry.callId] ?? []) : []))
      .findLast((call) => call.decision?.approved && !call.result)
  })
  /** Everything that stopping the turn would cancel or interrupt. */
  const stopped = computed(() => ({
    waiting: pendingIds.value.length + (previewing.value ? 1 : 0),
    forked: pending.value.filter(({ preview }) => preview).length + (previewing.value ? 1 : 0),
    hasTurn: transcript.value.turnId !== null,
    running: runningCall.value?.startedAt === undefined ? undefined : runningCall.value
  }))
  const activity = computed((): Activity => {
    void version.value
    if (!connected.value) return 'reconnecting'
    if (pendingIds.value.length > 0) return 'waiting'
    if (toRaw(transcript.value).turnId === null) return 'idle'
    if (runningCall.value ?? previewing.value) return 'running'
    return stream.text === '' ? 'thinking' : 'answering'
  })

  let lostTimer: ReturnType<typeof setTimeout>
  watch(connected, (now) => {
    clearTimeout(lostTimer)
    if (now) isLost.value = false
    else lostTimer = setTimeout(() => (isLost.value = true), LOST_AFTER_MS)
  })

  function open(id: string, model?: string): void {
    close()
    sessionId.value = id
    phase.value = 'connecting'
    progress.value = null
    ready.value = null
    isKnown.value = false
    // The model's provider chooses the ids of calls, so another session may have the same ones.
    outputs.clear()
    talks.clear()
    views.enter(id)
    log.clear()
    socket.value = openSocket(id, model)
    bindEvents(socket.value)
    // A model that is not there any more is not asked for again.
    if (model) socket.value.once('system:ready', (news) => news.model !== model && remember(LAST_MODEL, null))
    void enter(socket.value)
  }

  function openNew(): void {
    open(newId(), recall(LAST_MODEL) ?? undefined)
  }

  /** Connects as this browser's owner. */
  async function enter(from: PageSocket): Promise<void> {
    try {
      await becomeOwner()
      const news = takeOwnerNews()
      if (news === 'lost') notices.show(OWNER_LOST, 'error')
      if (news !== null && !isStored()) notices.show(NOTHING_STORED, 'error')
    } catch (error) {
      if (socket.value !== from) return
      const isAway = !(error instanceof ApiError) || ['offline', 'no_answer', 'failed'].includes(error.code)
      if (isAway) return enterLater(from)
      return onRefused(from, Object.assign(error, { data: { code: error.code } }))
    }
    if (socket.value === from) from.connect()
  }

  function enterLater(from: PageSocket, afterMs = 0): void {
    setTimeout(() => socket.value === from && void enter(from), Math.max(RETRY_AFTER_MS, afterMs))
  }

  function close(): void {
    socket.value?.disconnect()
    socket.value = null
    log.suspend()
    connected.value = false
  }

  function bindEvents(from: PageSocket): void {
    from.on('disconnect', (reason) => {
      connected.value = false
      log.suspend()
      // A server that is ready reports no progress to the next connection.
      progress.value = null
      if (reason === 'io server disconnect' && !isDeleting) void onServerDisconnect(from)
    })
    from.on('connect_error', (error) => onRefused(from, error))
    from.on('system:progress', (news) => {
      if (progress.value && news.stage === 'ready') notices.show('The sandbox is ready.')
      progress.value = news.stage === 'ready' ? null : news
    })
    from.on('system:ready', (news) => {
      ready.value = news
      if (progress.value?.stage === 'models') progress.value = null
    })
    from.on('session:snapshot', onSnapshot)
    bindNews(from)
    from.on('session:lost', () => continueInNew(SESSION_LOST))
    from.on('session:state', (news) => {
      state.value = { ...news, at: Date.now() }
    })
    from.on('agent:thinking', ({ turnId }) => stream.begin(turnId))
    from.on('agent:delta', ({ turnId, text }) => stream.push(turnId, text))
    from.on('agent:text', ({ turnId, text }) => stream.restart(turnId, text))
    from.on('agent:reasoning', ({ turnId, text, at }) => stream.think(turnId, text, at))
    from.on('tool:output_so_far', ({ callId, chunks, at }) => outputs.take(callId, at, chunks, true))
    from.on('tool:output', ({ callId, stream: kind, text, at }) => outputs.take(callId, at, [{ stream: kind, text }]))
    from.on('tool:progress', talks.report)
    from.on('tool:log', talks.log)
    // Includes unknown events of a newer server: they still count in the sequence.
    from.onAny((type: string, data: { seq?: unknown; at?: unknown } | undefined) => {
      if (type === 'session:snapshot' || typeof data?.seq !== 'number') return
      const { seq, at, ...rest } = data
      log.take({ type, seq, at, data: rest } as SessionEvent)
    })
  }

  function onSnapshot(snapshot: Snapshot): void {
    if (!log.takeSnapshot(snapshot)) return
    state.value = { ...snapshot.state, at: Date.now() }
    isKnown.value = true
    connected.value = true
    notices.dropOffline()
    phase.value = 'open'
    addressSession(sessionId.value)
  }

  async function requestSnapshot(from: PageSocket | null): Promise<void> {
    const reply = await send('session:snapshot', {})
    if (reply.ok) return
    // A new connection sends a snapshot anyway.
    setTimeout(
      () => socket.value === from && connected.value && !log.isInSync() && void requestSnapshot(from),
      RETRY_AFTER_MS
    )
  }

  function onRefused(from: PageSocket, error: Refusal): void {
    connected.value = false
    const code = error.data?.code
    if (code === undefined) return // the network; socket.io tries again by itself
    if (code === 'session_lost') {
      continueInNew(SESSION_LOST)
      return
    }
    refusal.value = error.data?.message ?? error.message
    phase.value = code === 'unauthorized' || code === 'forbidden' ? code : 'refused'
    if (OWNER_PROBLEMS.includes(code)) {
      forgetOwner()
      from.disconnect() // the next connection sends the cookies as they are then
    }
    if (phase.value !== 'refused') from.disconnect()
    // Retry after a temporary refusal (server full, engine down): socket.io retries only lost connections.
    else enterLater(from, (error.data?.retryAfterSeconds ?? 0) * 1000)
  }

  /** The server closed the connection: the session was deleted, or can't be served right now. */
  async function onServerDisconnect(from: PageSocket): Promise<void> {
    const page = await api.sessions({ limit: 1000, archived: 'any' }).catch(() => null)
    if (socket.value !== from) return
    const isListed = page?.sessions.some((each) => each.sessionId === sessionId.value)
    const isGone = phase.value === 'open' && page?.next === null && !isListed
    if (!isGone) return void setTimeout(() => socket.value === from && from.connect(), RETRY_AFTER_MS)
    continueInNew('This session was deleted. Here is a new one.')
  }

  /** Runs a request that deletes the open session. If it fails, the page stays on the session. */
  async function whileDeleting<T>(work: () => Promise<T>): Promise<T> {
    const from = socket.value
    isDeleting = true
    try {
      return await work()
    } catch (error) {
      if (from && socket.value === from && !from.active) void onServerDisconnect(from)
      throw error
    } finally {
      isDeleting = false
    }
  }

  /** The session no longer exists: continue in a new one, with the draft. */
  function continueInNew(why: string): void {
    notices.show(why)
    deletedId.value = sessionId.value
    openNew()
  }

  function send<C extends CommandName>(name: C, input: CommandInput<C>): Promise<Ack> {
    const from = socket.value
    if (from) return command(from, name, input).then((reply) => noticeLoss(from, reply))
    return Promise.resolve({ ok: false, error: { code: 'offline', message: 'There is no session open.' } })
  }

  /** Sends a command, and shows the error message if it fails. */
  async function sendOrShow<C extends CommandName>(name: C, input: CommandInput<C>): Promise<boolean> {
    const reply = await send(name, input)
    if (!reply.ok) notices.show(reply.error.message, 'error')
    return reply.ok
  }

  function noticeLoss(from: PageSocket, reply: Ack): Ack {
    // The composer first restores the text that was not sent, so that it moves to the new session.
    if (!reply.ok && reply.error.code === 'unknown_session')
      setTimeout(() => socket.value === from && continueInNew(SESSION_LOST))
    return reply
  }

  /** Calls back for each stored event as it happens, but not for events in a snapshot. */
  function onEvent(listener: (event: SessionEvent) => void): () => void {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  return {
    ...{
      sessionId,
      deletedId,
      phase,
      refusal,
      connected,
      isLost,
      preparation,
      isSandboxMissing,
      ready,
      state,
      isKnown
    },
    ...{
      transcript,
      version,
      pending,
      pendingIds,
      questions,
      runningCall,
      previewing,
      stopped,
      activity,
      olderBefore,
      loadOlder
    },
    ...{ open, close, openNew, whileDeleting, send, sendOrShow, onEvent }
  }
})
