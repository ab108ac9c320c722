import { setTimeout as delay } from 'node:timers/promises'
import type Dockerode from 'dockerode'
import type { EngineCall } from './engine-call.ts'

const INSPECT_MS = 15_000
const EXIT_WAIT_MS = 2000
const EXIT_POLL_MS = 20

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
