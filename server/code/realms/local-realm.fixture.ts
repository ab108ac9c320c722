/** A realm in this process, for tests of what is around it. It runs the same prelude, without a thread or a container. */
import { PassThrough } from 'node:stream'
import { setImmediate as nextRound } from 'node:timers/promises'
import { constants, createContext, Script } from 'node:vm'
import { CODE_LIMITS, type RealmInput } from '../../../workspace-server/code/code-protocol.ts'
import { type Prelude, prelude } from '../../../workspace-server/code/prelude.ts'
import { readProgram } from '../../../workspace-server/code/read-program.ts'
import type { RealmProcess } from './code-channel.ts'

export interface LocalRealm extends RealmProcess {
  /** As if its container were killed. */
  kill(): void
}

export function localRealm(runtime = 'test'): LocalRealm {
  const stdin = new PassThrough()
  const stdout = new PassThrough()
  const { promise: exited, resolve } = Promise.withResolvers<string>()
  const write = (message: object) => void stdout.write(`${JSON.stringify(message)}\n`)
  let realm: Prelude | undefined
  let token = ''
  const told = (input: RealmInput) => {
    if (input.type === 'run') {
      token = input.token
      realm = startProgram(input, (message) => write({ ...message, token }))
    } else {
      const [code, text] = input.ok ? ['', input.value] : [input.code, input.message]
      const isKnown = realm?.answer(input.n, input.at, input.ok, code, text)
      if (!isKnown) write({ type: 'failed', token, code: 'code_departed', message: `no call ${input.n}`, line: 0 })
    }
  }
  void (async () => {
    let rest = ''
    for await (const chunk of stdin) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        told(JSON.parse(line))
        await nextRound()
        if (realm?.open() === 0) realm.end(0)
      }
    }
  })()
  write({ type: 'ready', runtime })
  const kill = () => resolve('killed')
  return { stdin, stdout, exited, kill, stop: async () => kill() }
}

function startProgram({ code, seed, now }: { code: string; seed: number; now: number }, write: (m: object) => void) {
  const context = createContext(constants.DONT_CONTEXTIFY, { codeGeneration: { strings: false, wasm: false } })
  const send = (type: string, n: number, kind: string, server: string, tool: string, text: string, line: number) => {
    if (type === 'call') write({ type, n, kind, server, tool, args: text, line })
    else if (type === 'done') write({ type, value: text })
    else if (type === 'failed') write({ type, code: kind, message: text, line })
    else write({ type, text })
    return undefined
  }
  const realm: Prelude = new Script(`(${prelude})`).runInContext(context)({
    ...{ send, seed, now, lines: code.split('\n').length },
    limits: CODE_LIMITS
  })
  const program = readProgram(code)
  realm.start(() => program.runInContext(context))
  return realm
}
