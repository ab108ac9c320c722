/**
 * The channel between the orchestrator and the realm in which a program runs: lines of JSON on the stdin and stdout of a process of
 * its own. Only types, names and limits; neither side trusts the other. Every line of a run carries its token, which is new for
 * every attempt.
 */
import { INSIDE } from '../protocol.ts'

export const CODE = {
  /** `server.mjs code` runs the realm instead of the server. */
  command: 'code',
  /** Raise this number when programs could behave differently than before: a stored run is not replayed on another version. */
  version: 4
} as const

/**
 * Even code that escapes from the realm can open no file, start no process or thread, and compile no text. The container remains
 * the boundary.
 */
export function realmArguments(server: string = INSIDE.server, readable: string = server): string[] {
  return [
    '--permission',
    '--allow-worker',
    `--allow-fs-read=${readable}`,
    '--disallow-code-generation-from-strings',
    '--experimental-vm-modules',
    // A program that fills its stack gets errors of Node. Through them it can reach our built-ins, but not change them.
    '--frozen-intrinsics',
    '--disable-sigusr1',
    // SQLite opens files without asking for permission.
    '--no-experimental-sqlite',
    '--no-warnings',
    server,
    CODE.command
  ]
}

/** These apply to the process, or give rights that only its first thread needs: with them, a thread could start one without limits. */
const FIRST_THREAD_ONLY = ['--allow-worker', '--disallow-code-generation-from-strings', '--disable-sigusr1']

/** The arguments for the thread in which the program runs. `all` are those of the process. */
export function threadArguments(all: readonly string[]): string[] {
  return all.filter((argument) => !FIRST_THREAD_ONLY.includes(argument))
}

export const CODE_LIMITS = {
  /** Length of the program. */
  codeChars: 200_000,
  /** Calls, searches, descriptions and timers of a run. Later ones get an error; a run that goes on regardless is stopped. */
  calls: 500,
  stoppedAtCalls: 1000,
  /** Calls that are open at the same time; the next one gets an error. */
  openCalls: 100,
  /** The arguments of one call, and the value that the program returns, as JSON. */
  argumentChars: 1_000_000,
  /** The arguments of all calls of a run. */
  allArgumentsChars: 24_000_000,
  valueChars: 1_000_000,
  /** Levels of arguments and of the value. The orchestrator reads no JSON with more. */
  levels: 64,
  /** The result of one call, as JSON. */
  resultChars: 8_000_000,
  /** All results of a run. */
  allResultsChars: 64_000_000,
  /** All that the program prints, and one line of it. */
  logChars: 200_000,
  logLineChars: 20_000,
  progressChars: 500,
  progressTexts: 1000,
  errorChars: 4000,
  cpuMs: 30_000,
  memoryMb: 256
} as const

/**
 * Ends that only the orchestrator gives a run. A program, or a realm that it has broken out of, can't claim them: one of them makes
 * the run begin again in another realm.
 */
export const OUR_ENDS: ReadonlySet<string> = new Set([
  'code_realm_ended',
  'code_channel_broken',
  'code_runtime_changed',
  'code_changed',
  'code_timeout',
  'code_cancelled',
  'code_expired'
])

/** A line is longer than its text if characters are escaped. */
export const MAX_CODE_LINE_BYTES = 8 * CODE_LIMITS.argumentChars

export type CallKind = 'tool' | 'search' | 'describe' | 'sleep'

/** To the realm. `value` is JSON, which is parsed inside. */
export type RealmInput =
  | { type: 'run'; token: string; code: string; seed: number; now: number }
  | ({ type: 'answer'; token: string; n: number; at: number } & RealmAnswer)

export type RealmAnswer = { ok: true; value: string } | { ok: false; code: string; message: string }

/** From the realm. `args` and `value` are JSON as text. */
export type RealmOutput =
  | { type: 'ready'; runtime: string }
  | { type: 'call'; token: string; n: number; kind: CallKind; server: string; tool: string; args: string; line: number }
  | { type: 'log'; token: string; text: string }
  | { type: 'progress'; token: string; text: string }
  | { type: 'done'; token: string; value: string }
  | { type: 'failed'; token: string; code: string; message: string; line: number }

/** The name of the program in stack traces. */
export const PROGRAM_FILE = 'program.ts'
