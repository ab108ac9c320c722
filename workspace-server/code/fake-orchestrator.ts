/** Plays the orchestrator in tests: starts a realm in a process of its own and answers its calls. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type RealmOutput, realmArguments } from './code-protocol.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NODE = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url))
const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))

type Call = Extract<RealmOutput, { type: 'call' }>
type End = Extract<RealmOutput, { type: 'done' | 'failed' }>
type Reply = { ok: true; value: string } | { ok: false; code: string; message: string }

interface Outcome {
  end: End
  calls: Call[]
  logs: string[]
}

function spawnRealm(entry: string): ChildProcess {
  const args = realmArguments(entry, ROOT)
  return spawn(NODE, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { TZ: 'UTC', SECRET: 'hidden' } })
}

/** Runs a program to its end. `answer` gets each call, and returns undefined to answer later with `reply`. */
export async function runProgram(
  code: string,
  answer: (call: Call, reply: (n: number, reply: Reply) => void) => Reply | undefined = () => ({
    ok: true,
    value: 'null'
  }),
  entry: string = MAIN
): Promise<Outcome> {
  const child = spawnRealm(entry)
  const { stdin, stdout } = child
  if (!stdin || !stdout) throw new Error('no streams')
  const send = (message: object) => stdin.write(`${JSON.stringify({ token: 't', ...message })}\n`)
  const outcome: Omit<Outcome, 'end'> = { calls: [], logs: [] }
  const { promise: ended, resolve } = Promise.withResolvers<End>()
  let at = 1000
  const reply = (n: number, given: Reply) => {
    at += 1000
    send({ type: 'answer', n, at, ...given })
  }
  createInterface({ input: stdout }).on('line', (line) => {
    const output: RealmOutput = JSON.parse(line)
    if (output.type === 'ready') send({ type: 'run', code, seed: 7, now: 1000 })
    if (output.type === 'log') outcome.logs.push(output.text)
    if (output.type === 'done' || output.type === 'failed') resolve(output)
    if (output.type !== 'call') return
    outcome.calls.push(output)
    const given = answer(output, reply)
    if (given) reply(output.n, given)
  })
  const end = await ended
  stdin.end()
  return { ...outcome, end }
}
