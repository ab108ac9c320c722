/**
 * Real pipes for a command's output. Node connects children through sockets, and opening /dev/stdout or /dev/stderr fails on a
 * socket. When a command ends, all it has written is in the pipe: no other process has to run for its last output to arrive.
 */
import { execFile } from 'node:child_process'
import { closeSync, constants, existsSync, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

const MKFIFO = ['/usr/bin/mkfifo', '/bin/mkfifo']
const MAKING_MS = 5000
const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

export interface OutputPipe {
  /** The command's end of the pipe. Close it here once the command has it, or the pipe never ends. */
  writeFd: number
  reader: Socket
}

/** For stdout and stderr. Returns `undefined` if they can't be created: a full /tmp, an image without mkfifo. */
export async function makeOutputPipes(): Promise<[OutputPipe, OutputPipe] | undefined> {
  // Not at the start: the realm of a program loads this file too, and may look at no file.
  const mkfifo = MKFIFO.find((path) => existsSync(path))
  if (mkfifo === undefined) return undefined
  let folder: string | undefined
  const pipes: OutputPipe[] = []
  try {
    folder = mkdtempSync('/tmp/.output-')
    const [stdout, stderr] = [join(folder, 'stdout'), join(folder, 'stderr')]
    // Any other signal would wait for as long as a command keeps the process stopped.
    const limits = { timeout: MAKING_MS, killSignal: 'SIGKILL' } as const
    await promisify(execFile)(mkfifo, ['-m', '600', stdout, stderr], { env: {}, ...limits })
    for (const path of [stdout, stderr]) pipes.push(openPipe(path))
    return pipes as [OutputPipe, OutputPipe]
  } catch {
    for (const { writeFd, reader } of pipes) {
      closeSync(writeFd)
      reader.destroy()
    }
    return undefined
  } finally {
    if (folder !== undefined) removeFolder(folder)
  }
}

/** A command may have put something into the folder that can't be removed. That must not prevent other commands. */
function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {}
}

/** Commands could swap the path meanwhile, so the second end is opened through the first one, which never blocks. */
function openPipe(path: string): OutputPipe {
  const readFd = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
  try {
    if (!fstatSync(readFd).isFIFO()) throw new Error(`${path} is no longer a pipe.`)
    const writeFd = openSync(`/proc/self/fd/${readFd}`, O_WRONLY)
    return { writeFd, reader: new Socket({ fd: readFd, readable: true, writable: false }) }
  } catch (error) {
    closeSync(readFd)
    throw error
  }
}
