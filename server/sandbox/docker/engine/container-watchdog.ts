import { spawn } from 'node:child_process'
import type Dockerode from 'dockerode'
import { CHILD_APP, LABEL } from './container-spec.ts'

/**
 * Removes the containers of an instance. It runs twice because the engine may still be creating one when its instance is killed.
 * It does not use dockerode, because only Node is certain to be available where it runs.
 */
const REMOVE = `
const { request } = require('node:http')
const [at, labels] = process.argv.slice(1)
const ask = (method, path, done = () => {}) => {
  let text = ''
  const asked = request({ ...JSON.parse(at), method, path, timeout: 10_000 }, (answer) => {
    answer.on('data', (chunk) => { text += chunk })
    answer.on('end', () => done(text))
  })
  asked.on('timeout', () => asked.destroy())
  asked.on('error', () => {})
  asked.end()
}
const listIn = (text) => {
  try {
    const list = JSON.parse(text)
    return Array.isArray(list) ? list : []
  } catch {
    return []
  }
}
const filters = encodeURIComponent(JSON.stringify({ label: JSON.parse(labels) }))
const sweep = () => ask('GET', '/containers/json?all=1&filters=' + filters, (text) => {
  // An engine that fails answers with an error or nothing, so the list is empty. The second sweep may succeed.
  for (const { Id } of listIn(text)) ask('DELETE', '/containers/' + Id + '?force=1&v=1')
})
sweep()
setTimeout(sweep, 3000)
`
const WAIT = `trap '' HUP INT TERM; while read -r _; do :; done; exec "$1" --disable-sigusr1 -e "$2" "$3" "$4"`

/**
 * Removes what a supervisor can't: a container that was created but not yet started when this process was killed. A shell waits
 * for the end of our pipe, as in `process-sweep.ts`. There is no watchdog if the engine is reached by TLS or SSH; the next
 * process cleans up then.
 */
export async function watchContainers(docker: Dockerode, instance: string): Promise<void> {
  const at = await plainAddress(docker)
  if (at === undefined) return
  // The filter includes our app label because the engine proxy only lists containers that have it.
  const labels = [`${LABEL.app}=${CHILD_APP}`, `${LABEL.instance}=${instance}`]
  const words = [process.execPath, REMOVE, JSON.stringify(at), JSON.stringify(labels)]
  const shell = spawn('/bin/sh', ['-c', WAIT, 'mcp-orchestrator-containers', ...words], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {}
  })
  shell.on('error', () => {})
  shell.stdin.on('error', () => {})
  // The watchdog must not keep this process alive: its work begins when we end.
  shell.unref()
  if ('unref' in shell.stdin && typeof shell.stdin.unref === 'function') shell.stdin.unref()
}

async function plainAddress(docker: Dockerode): Promise<Record<string, unknown> | undefined> {
  const modem: { protocol?: unknown; host?: unknown; port?: unknown; getSocketPath?: () => Promise<unknown> } =
    docker.modem as object
  if (typeof modem.host === 'string')
    return modem.protocol === 'http' ? { host: modem.host, port: modem.port } : undefined
  const socketPath = await modem.getSocketPath?.()
  return typeof socketPath === 'string' ? { socketPath } : undefined
}
