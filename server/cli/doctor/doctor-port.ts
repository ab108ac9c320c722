import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Settings } from '../../config/settings.ts'
import { errorCode, messageOf } from '../../lib/errors.ts'
import { holdersOf, localSockets } from '../../lib/web/local-sockets.ts'
import type { Found } from './doctor-servers.ts'

const ASK_MS = 2000

/** Checks whether `serve` can listen on its port, and finds out what uses it. */
export async function describePort({ HOST, PORT }: Pick<Settings, 'HOST' | 'PORT'>): Promise<Found> {
  const where = `port ${PORT} of ${HOST}`
  const server = createServer()
  try {
    const listening = once(server, 'listening')
    server.listen(PORT, HOST)
    await listening
    return PORT === 0 ? `any free port of ${HOST}` : `${where} is free`
  } catch (error) {
    const code = errorCode(error)
    if (code === 'EACCES') throw new Error(`This user may not use ${where}: set PORT to 1024 or higher.`)
    if (code !== 'EADDRINUSE')
      throw new Error(`Can't listen on ${where} (${messageOf(error)}): set HOST to an address of this machine.`)
    if (await isOurs(HOST, PORT)) return { warn: `${where} is in use by a running MCP Orchestrator` }
    throw new Error(`The ${where} is in use${await holderOf(PORT)}: stop what uses it, or set PORT to another one.`)
  } finally {
    server.close()
  }
}

async function isOurs(host: string, port: number): Promise<boolean> {
  const name = host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '127.0.0.1' : host
  try {
    const answer = await fetch(`http://${name}:${port}/healthz`, {
      signal: AbortSignal.timeout(ASK_MS),
      redirect: 'error'
    })
    return (await answer.text()).slice(0, 100) === '{"ok":true}'
  } catch {
    return false
  }
}

/** Names the process if possible: the open files of another user's process are not visible. */
async function holderOf(port: number): Promise<string> {
  try {
    const listening = localSockets().filter((socket) => socket.isListening && socket.port === port)
    const [pid] = (await Promise.all(listening.map(({ inode }) => holdersOf(inode, () => true)))).flat()
    return pid === undefined ? '' : ` by ${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()} (process ${pid})`
  } catch {
    // There is no /proc, or it can't be read.
    return ''
  }
}
