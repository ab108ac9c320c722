import type Dockerode from 'dockerode'
import { isRecord } from '../../../lib/is-record.ts'
import type { EngineStatus } from '../../port.ts'
import type { EngineCall } from './engine-call.ts'

const STATUS_MS = 5000

export async function readEngineStatus(docker: Dockerode, call: EngineCall): Promise<EngineStatus> {
  return call({ to: 'say how it is', ms: STATUS_MS }, async (abortSignal) => {
    const info = await readInfo(docker, abortSignal)
    return {
      name: 'Docker',
      version: String(info.ServerVersion),
      runtimes: isRecord(info.Runtimes) ? Object.keys(info.Runtimes) : [],
      cgroupVersion: String(info.CgroupVersion ?? 'unknown'),
      containers: Number(info.Containers),
      remapsUsers: /name=(rootless|userns)/.test(String(info.SecurityOptions))
    }
  })
}

/** docker.info() accepts no signal, and a call that is never aborted keeps its socket open. */
function readInfo(docker: Dockerode, abortSignal: AbortSignal): Promise<Record<string, unknown>> {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
  const statusCodes = { 200: true, 500: 'server error' }
  docker.modem.dial({ path: '/info', method: 'GET', abortSignal, statusCodes }, (error, info) => {
    if (error) reject(error)
    else resolve(isRecord(info) ? info : {})
  })
  return promise
}
