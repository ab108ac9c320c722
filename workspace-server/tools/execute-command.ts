import { lstatSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { errorCode, hasCode } from '../../server/lib/errors.ts'
import { LiveOutput } from '../command/live-output.ts'
import { type CommandResult, killGroup, runCommand } from '../command/run-command.ts'
import { commandEnvironment } from '../command/shell.ts'
import { resolveExpected } from '../files/path-target.ts'
import type { WorkspaceRoot } from '../files/workspace-root.ts'
import { hasOtherProcesses } from '../process/container-processes.ts'
import { type ExpectedTarget, MAX_COMMANDS_AT_ONCE, MAX_LINE_BYTES } from '../protocol.ts'
import { asToolError } from './system-error.ts'
import { objectSchema, type Tool, type ToolContext, ToolError, type ToolReply } from './tool.ts'
import { ToolArguments } from './tool-arguments.ts'

const DEFAULT_TIMEOUT_SECONDS = 60
const MAX_TIMEOUT_SECONDS = 600
/** The kernel accepts 128 kB for one argument, in bytes; a character has up to three. */
const MAX_COMMAND_CHARS = 40_000

const ENDING_MS = [1, 5, 20, 50]

const START_FAILURES: Record<string, string> = {
  EAGAIN: 'The command could not be started: the sandbox has reached its limit of processes; end some and try again.',
  ENOMEM: 'The command could not be started: the sandbox has no memory left; end some processes and try again.',
  EMFILE: 'The command could not be started: too many files are open; try again when fewer commands run.'
}

const DESCRIPTION: Omit<Tool, 'run'> = {
  name: 'execute_command',
  title: 'Execute a command',
  description:
    'Runs a command with bash in the sandbox and waits for it. A command that fails is a normal result: look at exitCode. Output over 1 MB per stream is cut in the middle. There is no terminal and, unless stdin is given, no input. At the timeout the command and everything it started are killed. Start servers in the background with their output in a file: "server > log 2>&1 &".',
  inputSchema: objectSchema(
    {
      command: { type: 'string', description: 'As typed into bash; several lines are fine.' },
      cwd: { type: 'string', description: 'Folder in the workspace to run it in. Defaults to the workspace itself.' },
      timeoutSeconds: {
        type: 'number',
        minimum: 0.1,
        maximum: MAX_TIMEOUT_SECONDS,
        description: `Default ${DEFAULT_TIMEOUT_SECONDS}.`
      },
      stdin: { type: 'string', description: 'Text for its standard input.' }
    },
    'command'
  ),
  outputSchema: objectSchema(
    {
      exitCode: { type: ['integer', 'null'], description: 'null if a signal ended it.' },
      signal: { type: ['string', 'null'] },
      timedOut: { type: 'boolean' },
      durationMs: { type: 'integer' },
      stdout: { type: 'string' },
      stderr: { type: 'string' },
      stdoutOmittedBytes: { type: 'integer' },
      stderrOmittedBytes: { type: 'integer' },
      leftRunning: { type: 'boolean', description: 'Processes still run in the background.' },
      order: {
        type: 'array',
        items: { type: 'integer' },
        description: 'How the streams took turns: characters of stdout, then of stderr, and so on.'
      }
    },
    'exitCode',
    'signal',
    'timedOut',
    'durationMs',
    'stdout',
    'stderr'
  ),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true }
}

export interface CommandTool {
  tool: Tool
  /** Ends every running command with its whole process group. */
  killAll(): void
}

/**
 * `endBackground` ends everything in the sandbox except the server. It is the last resort when no process can be started: after a
 * fork bomb there is no other way to end one.
 */
export function executeCommandTool(
  root: WorkspaceRoot,
  endBackground: () => Promise<boolean>,
  outOfSight = false,
  hasOthers = hasOtherProcesses
): CommandTool {
  const running = new Set<number>()
  const env = commandEnvironment(root.path)
  let active = 0
  const tool: Tool = {
    ...DESCRIPTION,
    run: async (args, context) => {
      const job = { ...readJob(root, args, context.expected), env, outOfSight, ...waiting(context) }
      if (active >= MAX_COMMANDS_AT_ONCE)
        throw new ToolError(`${MAX_COMMANDS_AT_ONCE} commands are already running; wait for one to end and try again.`)
      active += 1
      try {
        const result = await runCommand(job, running)
        return report(result, job.timeoutMs, active === 1 && (await isSomethingLeft(hasOthers)))
      } catch (error) {
        throw hasCode(error, 'EAGAIN') && active === 1 ? await makeRoom(endBackground) : asStartError(error)
      } finally {
        active -= 1
      }
    }
  }
  return { tool, killAll: () => running.forEach((pid) => void killGroup(pid, 'SIGKILL')) }
}

function readJob(root: WorkspaceRoot, args: Record<string, unknown>, expected: ExpectedTarget | undefined) {
  const given = new ToolArguments(args, ['command', 'cwd', 'timeoutSeconds', 'stdin'])
  const command = given.textWithoutNul('command', MAX_COMMAND_CHARS)
  if (command.trim() === '') throw new ToolError('The argument "command" must not be empty.')
  const named = given.path('cwd', '.')
  const seconds = given.number('timeoutSeconds', { min: 0.1, max: MAX_TIMEOUT_SECONDS }, DEFAULT_TIMEOUT_SECONDS)
  const stdin = given.optionalText('stdin', MAX_LINE_BYTES)
  return { command, cwd: folder(root, named, expected), timeoutMs: seconds * 1000, stdin }
}

function folder(root: WorkspaceRoot, named: string, expected: ExpectedTarget | undefined): string {
  try {
    const cwd = resolveExpected(root, named, expected)
    if (!lstatSync(cwd).isDirectory())
      throw new ToolError(`The argument "cwd" must name a folder; "${named}" is not one.`)
    return cwd
  } catch (error) {
    throw asToolError(error, named)
  }
}

function waiting({ signal, progress }: ToolContext) {
  return { signal, live: progress && new LiveOutput(progress) }
}

async function makeRoom(endBackground: () => Promise<boolean>): Promise<ToolError> {
  const done = await endBackground()
  const outcome = done ? 'so all of them were ended; try again' : 'and they could not all be ended'
  return new ToolError(
    `The command could not be started: background processes used up the sandbox's process limit, ${outcome}.`
  )
}

function asStartError(error: unknown): unknown {
  const code = errorCode(error)
  if (code === undefined) return error
  return new ToolError(START_FAILURES[code] ?? `The command could not be started (${code}).`, { cause: error })
}

/** A process that the shell waited for may take a moment to disappear. */
async function isSomethingLeft(hasOthers: () => boolean): Promise<boolean> {
  for (const ms of ENDING_MS) {
    if (!hasOthers()) return false
    await delay(ms)
  }
  return hasOthers()
}

function report(result: CommandResult, timeoutMs: number, leftRunning: boolean): ToolReply {
  const { exitCode, signal, timedOut, durationMs, stdout, stderr, order } = result
  const ending = timedOut
    ? `killed: it ran longer than ${timeoutMs / 1000} s`
    : signal === null
      ? `exit code ${exitCode}`
      : `killed by ${signal}`
  const parts = [stdout.text, stderr.text === '' ? '' : `[stderr]\n${stderr.text}`, `[${ending}, ${durationMs} ms]`]
  const text = parts
    .filter((part) => part !== '')
    .reduce((all, part) => `${all}${all.endsWith('\n') ? '' : '\n'}${part}`)
  return {
    content: [{ type: 'text', text }],
    structuredContent: {
      exitCode,
      signal,
      timedOut,
      durationMs,
      stdout: stdout.text,
      stderr: stderr.text,
      stdoutOmittedBytes: stdout.omittedBytes,
      stderrOmittedBytes: stderr.omittedBytes,
      ...(leftRunning && { leftRunning }),
      // One stream needs no order.
      ...(stderr.text !== '' && { order })
    }
  }
}
