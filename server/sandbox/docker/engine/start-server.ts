import type Dockerode from 'dockerode'
import { INSIDE } from '../../../../workspace-server/protocol.ts'
import { isAppError } from '../../../lib/errors.ts'
import type { StartServer } from '../../workspace/open-connection.ts'
import { isRunning, unpauseContainer } from './container-state.ts'
import type { EngineCall } from './engine-call.ts'
import { execExitCode, prepareExec, startExec } from './exec.ts'
import { StreamDemuxer } from './stream-demuxer.ts'

const EXEC_MS = 30_000

/** Starts servers in one container, which it unpauses if need be. */
export function serverStarter(docker: Dockerode, call: EngineCall, containerId: string): StartServer {
  const unpaused = <T>(work: () => Promise<T>) => whenUnpaused(docker, call, containerId, work)
  return async (cmd) => {
    const request = { docker, call, containerId, cmd, workingDir: INSIDE.root, what: 'a server', ms: EXEC_MS }
    const exec = await unpaused(() => prepareExec(request))
    const stream = await unpaused(() => startExec(exec, call, 'a server', EXEC_MS))
    return {
      stream,
      demux: (sink) => new StreamDemuxer(sink),
      exitCode: () => execExitCode(exec, call),
      isRunning: () => isRunning(docker, call, containerId, exec)
    }
  }
}

/** Does the work, if need be after unpausing the container: an engine may accept a command that it then refuses to start. */
async function whenUnpaused<T>(
  docker: Dockerode,
  call: EngineCall,
  containerId: string,
  work: () => Promise<T>
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isAppError(error, 'container_paused')) throw error
    await unpauseContainer(docker, call, containerId, EXEC_MS)
    return work()
  }
}
