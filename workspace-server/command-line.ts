import { parseArgs } from 'node:util'
import { INSIDE } from './protocol.ts'

export interface CommandLine {
  epoch: number
  root: string
  state: string
  /** Only into a container that an owner has worked in: after a restart its files are gone, which must not pass for deletion. */
  resume: boolean
  /** Hide the server from commands: for runtimes in which its process is open to them. */
  hide: boolean
}

/** Throws an Error with a sentence when the command line is not understood. */
export function parseCommandLine(argv: string[]): CommandLine {
  const { values } = parseArgs({
    args: argv,
    options: {
      epoch: { type: 'string' },
      root: { type: 'string' },
      state: { type: 'string' },
      resume: { type: 'boolean', default: false },
      hide: { type: 'boolean', default: false }
    },
    strict: true
  })
  const epoch = Number(values.epoch ?? Number.NaN)
  if (!Number.isSafeInteger(epoch) || epoch < 0) throw new Error('--epoch must be a whole number from 0.')
  return {
    epoch,
    root: values.root ?? INSIDE.root,
    state: values.state ?? INSIDE.state,
    resume: values.resume,
    hide: values.hide
  }
}
