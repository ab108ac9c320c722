/**
 * Real pipes for what a command says. Node connects children through sockets, and opening /dev/stdout or /dev/stderr fails on a
 * socket. What a command has written is in the pipe when it ends, whoever gets the processor next: nothing has to run between it
 * and us for its last words to arrive.
 */
import { execFile } from 'node:child_process'
import { closeSync, constants, existsSync, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

const MKFIFO = ['/usr/bin/mkfifo', '/bin/mkfifo'].find((path) => existsSync(path))
const MAKING_MS = 5000
const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

export interface OutputPipe {
  /** The command's end. To be closed here once the command has it, or the pipe never ends. */
  writeFd: number
  reader: Socket
}

/** For stdout and stderr; `undefined` where none can be made: a full /tmp, an image without mkfifo. */
export async function makeOutputPipes(): Promise<[OutputPipe, OutputPipe] | undefined> {
  if (MKFIFO === undefined) return undefined
  let folder: string | undefined
  const pipes: OutputPipe[] = []
  try {
    folder = mkdtempSync('/tmp/.output-')
    const [stdout, stderr] = [join(folder, 'stdout'), join(folder, 'stderr')]
    // By SIGKILL: any other signal waits as long as a command keeps it stopped.
    const limits = { timeout: MAKING_MS, killSignal: 'SIGKILL' } as const
    await promisify(execFile)(MKFIFO, ['-m', '600', stdout, stderr], { env: {}, ...limits })
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

/** A command may have put something into it that can't be removed: that is no reason to run no command any more. */
function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {}
}

/** Commands could put something else at the path meanwhile: hence the second end by way of the first, which never waits. */
function openPipe(path: string): OutputPipe {
  const readFd = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
  try {
    if (!fstatSync(readFd).isFIFO()) throw new Error(`${path} is no pipe any more.`)
    const writeFd = openSync(`/proc/self/fd/${readFd}`, O_WRONLY)
    return { writeFd, reader: new Socket({ fd: readFd, readable: true, writable: false }) }
  } catch (error) {
    closeSync(readFd)
    throw error
  }
}
