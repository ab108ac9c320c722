import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type Dockerode from 'dockerode'
import type { EngineCall } from './engine-call.ts'

const INSPECT_MS = 15_000
const EXIT_WAIT_MS = 2000
const EXIT_POLL_MS = 20

export interface ExecRequest {
  docker: Dockerode
  call: EngineCall
  containerId: string
  cmd: string[]
  workingDir: string
  /** "a command" or "a server", for messages. */
  what: string
  ms: number
}

/** Prepares a process in a running container, with its input and output attached. */
export function prepareExec({
  docker,
  call,
  containerId,
  cmd,
  workingDir,
  what,
  ms
}: ExecRequest): Promise<Dockerode.Exec> {
  const attached = { AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: false }
  return call({ to: `prepare ${what} in a container`, ms }, (abortSignal) =>
    docker.getContainer(containerId).exec({ ...attached, Cmd: cmd, WorkingDir: workingDir, abortSignal })
  )
}

export function startExec(exec: Dockerode.Exec, call: EngineCall, what: string, ms: number): Promise<Duplex> {
  return call({ to: `start ${what} in a container`, ms }, (abortSignal) =>
    exec.start({ hijack: true, stdin: true, Detach: false, Tty: false, abortSignal })
  )
}

/** Polls, because the stream ends shortly before the engine knows the exit code. */
export async function execExitCode(exec: Dockerode.Exec, call: EngineCall): Promise<number | null> {
  const until = performance.now() + EXIT_WAIT_MS
  for (;;) {
    const state = await call({ to: 'inspect a server', ms: INSPECT_MS }, (abortSignal) => exec.inspect({ abortSignal }))
    if (!state.Running && state.ExitCode !== null) return state.ExitCode
    if (performance.now() > until) return null
    await delay(EXIT_POLL_MS)
  }
}
