import { spawn } from 'node:child_process'
import type Dockerode from 'dockerode'

/**
 * Removes the containers of an instance, twice, because the engine may still be at work on one when its maker is killed. Without
 * dockerode: it runs where only Node is sure to be.
 */
const REMOVE = `
const { request } = require('node:http')
const [at, label] = process.argv.slice(1)
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
const filters = encodeURIComponent(JSON.stringify({ label: [label] }))
const sweep = () => ask('GET', '/containers/json?all=1&filters=' + filters, (text) => {
  for (const { Id } of JSON.parse(text)) ask('DELETE', '/containers/' + Id + '?force=1&v=1')
})
sweep()
setTimeout(sweep, 3000)
`
const WAIT = `trap '' HUP INT TERM; while read -r _; do :; done; exec "$1" -e "$2" "$3" "$4"`

/**
 * For what its supervisor can't see to: a container that was made but not yet started when this process was killed. A shell waits for
 * the end of our pipe, as in `process-sweep.ts`. Where the engine is reached by TLS or SSH there is none; the next process sweeps.
 */
export async function watchContainers(docker: Dockerode, label: string): Promise<void> {
  const at = await plainAddress(docker)
  if (at === undefined) return
  const words = [process.execPath, REMOVE, JSON.stringify(at), label]
  const shell = spawn('/bin/sh', ['-c', WAIT, 'mcp-orchestrator-containers', ...words], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {}
  })
  shell.on('error', () => {})
  shell.stdin.on('error', () => {})
  // It must not keep this process alive: when we end, its work begins.
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
