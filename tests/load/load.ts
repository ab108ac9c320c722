/** Holds many sessions at work on one server, and writes down how the server bears it. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import Dockerode from 'dockerode'
import { LABEL } from '../../server/sandbox/docker/engine/container-spec.ts'
import { serve } from '../support/serve.ts'
import { type Timing, workAsOne } from './person.ts'

export interface LoadOptions {
  sessions: number
  seconds: number
  pauseMs?: number
  sampleMs?: number
  say?: (line: string) => void
}

export interface Sample {
  /** ms since the start of the load. */
  at: number
  memoryMb: number
  openFiles: number
  containers: number
}

export interface LoadRun {
  options: LoadOptions
  timings: Timing[]
  samples: Sample[]
  errors: string[]
}

const START_AT_ONCE = 10

export async function load(options: LoadOptions): Promise<LoadRun> {
  const { sessions, seconds, pauseMs = 5000, sampleMs = 5000, say = () => {} } = options
  const env = { MAX_SESSIONS: String(sessions), WARM_POOL_SIZE: '0' }
  const served = await serve(env, { bundle: true })
  const docker = new Dockerode()
  const run: LoadRun = { options, timings: [], samples: [], errors: [] }
  const stopping = new AbortController()
  const began = performance.now()
  const work = {
    connect: (sessionId: string) => served.connect(sessionId),
    signal: stopping.signal,
    began,
    pauseMs,
    onTurn: (timing: Timing) => run.timings.push(timing),
    onError: (sentence: string) => run.errors.push(sentence)
  }
  const people: Promise<void>[] = []
  const sampling = (async () => {
    while (!stopping.signal.aborted) {
      const sample = {
        at: performance.now() - began,
        ...(await look(served.child.pid ?? 0, docker, served.deployment))
      }
      run.samples.push(sample)
      say(
        `${Math.round(sample.at / 1000)} s: ${run.timings.length} turns, ${run.errors.length} errors, ${sample.memoryMb} MB, ${sample.openFiles} files, ${sample.containers} containers`
      )
      await delay(sampleMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  while (people.length < sessions) {
    people.push(...Array.from({ length: Math.min(START_AT_ONCE, sessions - people.length) }, () => workAsOne(work)))
    await delay(1000)
  }
  await delay(Math.max(0, seconds * 1000 - (performance.now() - began)))
  stopping.abort()
  await Promise.all([sampling, ...people])
  await served.stop()
  return run
}

async function look(pid: number, docker: Dockerode, deployment: string): Promise<Omit<Sample, 'at'>> {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  const containers = await docker.listContainers({ filters: { label: [`${LABEL.deployment}=${deployment}`] } })
  return {
    memoryMb: Math.round(kilobytes / 1024),
    openFiles: readdirSync(`/proc/${pid}/fd`).length,
    containers: containers.length
  }
}
