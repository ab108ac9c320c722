/**
 * Everything that a program can reach. Its source runs inside the realm, so it may use nothing from this module's scope.
 * Invariants: the program gets no object from outside the realm, and every run with the same answers in the same order does the same.
 */
import type { PreludeOptions, Send } from './prelude-options.ts'

/** How the realm's thread works with the program. All values are primitive. */
export interface Prelude {
  answer(n: number, at: number, ok: boolean, code: string, text: string): boolean
  /** How many calls and timers the program waits for. After its last line only calls count. */
  open(): number
  /** Ends the run if the program has reached its end; `unhandled`: promises that were rejected and that nobody waited for. */
  end(unhandled: number): boolean
  /** Runs the program. */
  start(program: () => Promise<unknown>): void
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: its source is moved into the realm as a whole.
export function prelude({ send, seed, now, lines: lastLine, limits }: PreludeOptions): Prelude {
  const realm: Record<string, unknown> = globalThis
  const { stringify, parse } = JSON
  const { create, defineProperty, freeze } = Object
  const { construct, apply } = Reflect
  const { captureStackTrace } = Error
  const RealmError = Error
  const RealDate = Date
  const RealMap = Map
  const RealSet = Set
  const NativePromise = Promise
  const text = String
  const isList = Array.isArray
  const toWhole = parseInt
  const sliceOf = ''.slice
  const findIn = ''.indexOf
  const slice = (value: string, from: number, to?: number): string => apply(sliceOf, value, [from, to])
  let clock = now
  let calls = 0
  let waiting = 0
  /** Characters of all arguments. */
  let asked = 0
  let isOver = false

  // An error of the outside must never reach the program: through its constructor it would reach everything.
  const post = (...[type, n, kind, server, tool, content, line]: Parameters<Send>) => {
    let refusal: string | undefined = 'The program could not send this.'
    try {
      refusal = send(type, n, kind, server, tool, content, line)
    } catch {}
    if (refusal !== undefined) throw new ToolError('code_too_much', refusal)
  }

  // Locked, so that the program can't forge the line from which it calls.
  let callLine = 0
  const probe = create(null)
  const headline = (error: unknown) => {
    try {
      return error instanceof RealmError ? `${text(error.name)}: ${text(error.message)}` : ''
    } catch {
      return ''
    }
  }
  const prepareStackTrace = (error: unknown, frames: NodeJS.CallSite[]) => {
    let lines = headline(error)
    let first = 0
    for (let at = 0; at < frames.length; at++) {
      const line = frames[at]?.getFileName() === 'program.ts' ? frames[at]?.getLineNumber() : undefined
      if (!line || line > lastLine) continue
      first ||= line
      lines += `\n    at program.ts:${line}:${frames[at]?.getColumnNumber() ?? 0}`
    }
    if (error === probe) {
      callLine = first
      return ''
    }
    return lines
  }
  RealmError.stackTraceLimit = 20
  const locked = { writable: false, configurable: false, enumerable: false }
  defineProperty(RealmError, 'prepareStackTrace', { ...locked, value: prepareStackTrace })
  defineProperty(RealmError, 'stackTraceLimit', locked)
  defineProperty(realm, 'Error', { ...locked, value: RealmError })
  const lineOf = (caller: (...args: never[]) => unknown) => {
    callLine = -1
    try {
      captureStackTrace(probe, caller)
      void probe.stack
      delete probe.stack
    } catch {}
    if (callLine < 0) throw new RealmError('The stack of the program is full.')
    return callLine
  }

  class ToolError extends RealmError {
    readonly code: string
    constructor(code: string, message: string, line = 0) {
      super(message)
      this.name = 'ToolError'
      this.code = code
      const stack = `ToolError: ${message}${line > 0 ? `\n    at program.ts:${line}:0` : ''}`
      defineProperty(this, 'stack', { value: stack, writable: true, configurable: true })
    }
  }

  // ---- calls ----
  type Waiting = { done(ok: boolean, code: string, content: string): void; isTimer: boolean }
  const pending: Record<number, Waiting | undefined> = create(null)
  const call = (kind: string, server: string, tool: string, args: string, line: number, entry: Waiting) => {
    const n = calls + 1
    post('call', n, kind, server, tool, args, line)
    calls = n
    waiting++
    pending[n] = entry
    return n
  }

  const ask = (kind: string, server: string, tool: string, args: unknown, line: number) =>
    new NativePromise<unknown>((resolve, reject) => {
      const isObject = typeof args === 'object' && args !== null && !isList(args)
      if (!isObject) throw new ToolError('invalid_params', `Give ${tool || kind} one object with its arguments.`)
      const json = stringify(args)
      // A toJSON of the program may return anything.
      if (typeof json !== 'string' || json[0] !== '{')
        throw new ToolError('invalid_params', 'These arguments are not an object in JSON.')
      if (json.length > limits.argumentChars)
        throw new ToolError('code_too_much', `Arguments have at most ${limits.argumentChars} characters.`)
      if (asked + json.length > limits.allArgumentsChars)
        throw new ToolError('code_too_much', `All arguments have at most ${limits.allArgumentsChars} characters.`)
      if (waiting >= limits.openCalls)
        throw new ToolError('code_too_many_open', `At most ${limits.openCalls} calls may be open at the same time.`)
      const done = (ok: boolean, code: string, content: string) => {
        if (ok) resolve(parse(content))
        else reject(new ToolError(code, content, line))
      }
      call(kind, server, tool, json, line, { done, isTimer: false })
      asked += json.length
    })

  const named = (value: unknown, what: string) => {
    if (typeof value === 'string' && value !== '') return value
    throw new ToolError('invalid_params', `Give ${what} as a text.`)
  }

  const toolsOf = (server: string) =>
    new Proxy(create(null), {
      ownKeys: () => {
        throw new ToolError('invalid_params', `tools.${server} has no list of tools. Use search(words) to find tools.`)
      },
      get: (_target, tool) => {
        if (typeof tool !== 'string' || tool === 'then') return undefined
        const run = (args: unknown = {}) => ask('tool', server, tool, args, lineOf(run))
        return run
      }
    })
  const tools = new Proxy(create(null), {
    ownKeys: () => {
      throw new ToolError('invalid_params', 'tools has no list of servers. Use search(words) to find tools.')
    },
    get: (_target, server) => (typeof server === 'string' && server !== 'then' ? toolsOf(server) : undefined)
  })
  const search = (words: unknown, limit?: unknown) =>
    ask('search', '', '', { query: named(words, 'what to search for'), limit }, lineOf(search))
  const describe = (server: unknown, tool: unknown) =>
    ask('describe', named(server, 'the server'), named(tool, 'the tool'), {}, lineOf(describe))

  // ---- output ----
  let printed = 0
  const shown = (value: unknown) => {
    if (typeof value === 'string') return value
    try {
      return stringify(value) ?? text(value)
    } catch {}
    try {
      return text(value)
    } catch {}
    return '(not printable)'
  }
  const print = (...values: unknown[]) => {
    if (printed >= limits.logChars) return
    let line = ''
    for (let at = 0; at < values.length; at++) line += `${at > 0 ? ' ' : ''}${shown(values[at])}`
    const kept = slice(line, 0, limits.logLineChars)
    const cut = kept.length < line.length ? ` [${line.length - kept.length} characters cut]` : ''
    printed += kept.length + 1
    post('log', 0, '', '', '', kept + cut, 0)
    if (printed >= limits.logChars) post('log', 0, '', '', '', '[later output is left out]', 0)
  }
  const progress = (value: unknown) => post('progress', 0, '', '', '', slice(shown(value), 0, limits.progressChars), 0)

  // ---- virtual time and chance ----
  function VirtualDate(this: unknown, ...args: unknown[]) {
    if (!new.target) return new RealDate(clock).toString()
    return construct(RealDate, args.length === 0 ? [clock] : args, new.target)
  }
  VirtualDate.prototype = RealDate.prototype
  VirtualDate.now = () => clock
  VirtualDate.UTC = RealDate.UTC
  VirtualDate.parse = RealDate.parse
  defineProperty(RealDate.prototype, 'constructor', { value: VirtualDate })
  const formats = Intl.DateTimeFormat.prototype
  const { formatToParts } = formats
  const formatOf = Object.getOwnPropertyDescriptor(formats, 'format')?.get
  defineProperty(formats, 'format', {
    get(this: Intl.DateTimeFormat) {
      const format = formatOf ? (apply(formatOf, this, []) as Intl.DateTimeFormat['format']) : undefined
      return (date?: Date | number) => format?.(date === undefined ? clock : date)
    }
  })
  formats.formatToParts = function (this: Intl.DateTimeFormat, date) {
    return apply(formatToParts, this, [date === undefined ? clock : date]) as Intl.DateTimeFormatPart[]
  }
  let state = seed >>> 0
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  type Callback = (...args: unknown[]) => unknown
  const startTimer = (callback: Callback, ms: unknown, args: unknown[], line: number, again?: () => number) => {
    const wanted = Number(ms)
    const json = `{"ms":${wanted > 0 && wanted < 2 ** 31 ? wanted : 0}}`
    const done = () => {
      if (again) again()
      apply(callback, undefined, args)
    }
    return call('sleep', '', '', json, line, { done, isTimer: true })
  }
  const setTimer = (callback: unknown, ms: unknown, ...args: unknown[]) => {
    if (typeof callback !== 'function') throw new TypeError('Give setTimeout a function.')
    return startTimer((...given) => apply(callback as Callback, undefined, given), ms, args, lineOf(setTimer))
  }
  const repeated: Record<number, number | undefined> = create(null)
  const setRepeated = (callback: unknown, ms: unknown, ...args: unknown[]) => {
    if (typeof callback !== 'function') throw new TypeError('Give setInterval a function.')
    const line = lineOf(setRepeated)
    let id = 0
    const start = (): number => {
      const n = startTimer(callback as Callback, ms, args, line, start)
      id ||= n
      repeated[id] = n
      return n
    }
    return start()
  }
  const clearTimer = (id: unknown) => {
    const n = repeated[Number(id)] ?? Number(id)
    if (!pending[n]?.isTimer) return
    delete pending[n]
    waiting--
  }

  // ---- the end ----
  const finish = (type: string, code: string, content: string, line: number) => {
    if (isOver) return
    isOver = true
    post(type, 0, code, '', '', content, line)
  }
  const fail = (error: unknown) => {
    let message = 'The program threw something that can not be shown.'
    let line = 0
    let code = ''
    try {
      if (error instanceof RealmError) {
        const stack = text(error.stack ?? '')
        const at: number = apply(findIn, stack, ['\n    at program.ts:'])
        const trace = at < 0 ? '' : slice(stack, at)
        line = at < 0 ? 0 : toWhole(slice(trace, 19))
        message = `${headline(error)}${trace}`
        if (error instanceof ToolError) code = text(error.code)
      } else message = `Thrown: ${shown(error)}`
    } catch {}
    finish('failed', code || 'code_failed', message, line)
  }
  // Calls that the program did not wait for are made before the run ends, as a process does.
  let result: string | undefined
  const succeed = (value: unknown) => {
    let note = ''
    const replace = (_key: string, part: unknown) => {
      if (part instanceof RealMap || part instanceof RealSet) note = '[A Map or Set is {} in JSON: return [...it].]'
      if (typeof part !== 'bigint') return part
      note = '[A bigint is not JSON: it is returned as text.]'
      return text(part)
    }
    try {
      result = (value === undefined ? 'null' : stringify(value, replace)) ?? stringify(shown(value))
    } catch (error) {
      note = `[The value is not JSON: ${headline(error)}]`
      result = stringify(shown(value))
    }
    if (note !== '') print(note)
  }
  const endNow = (unhandled: number) => {
    if (result === undefined) return false
    if (unhandled > 0 && !isOver) print(`[${unhandled} failed without being noticed: use await or catch.]`)
    finish('done', '', result, 0)
    return true
  }

  // ---- what the program sees ----
  for (const name of ['SharedArrayBuffer', 'Atomics', 'WebAssembly', 'WeakRef', 'FinalizationRegistry']) {
    delete realm[name]
  }
  Math.random = random
  const console = freeze({ log: print, info: print, warn: print, error: print, debug: print })
  const given = { tools, search, describe, progress, console, ToolError, Date: VirtualDate }
  const timers = {
    setTimeout: setTimer,
    clearTimeout: clearTimer,
    setInterval: setRepeated,
    clearInterval: clearTimer,
    queueMicrotask: (callback: () => void) => void NativePromise.resolve().then(callback)
  }
  for (const [name, value] of Object.entries({ ...given, ...timers })) {
    defineProperty(realm, name, { value, writable: true, configurable: true, enumerable: false })
  }

  return {
    answer(n, at, ok, code, content) {
      const entry = pending[n]
      if (at > clock) clock = at
      // A timer that was cleared.
      if (entry === undefined) return n <= calls
      delete pending[n]
      waiting--
      try {
        entry.done(ok, code, content)
      } catch (error) {
        fail(error)
      }
      return true
    },
    open() {
      if (result === undefined) return waiting
      let callsLeft = 0
      for (const n in pending) if (pending[n]?.isTimer === false) callsLeft++
      return callsLeft
    },
    end: endNow,
    start(program) {
      try {
        program().then(succeed, fail)
      } catch (error) {
        fail(error)
      }
    }
  }
}
