import { parseArgs } from 'node:util'
import { INSIDE } from './protocol.ts'

export interface CommandLine {
  epoch: number
  root: string
  state: string
  /**
   * Start only if an owner has worked in this container before: after a restart its files are gone, which must not look like a
   * deletion.
   */
  resume: boolean
  /** Hide the server from commands, for runtimes in which they could access its process. */
  hide: boolean
}

/** Throws an Error with a sentence if the command line is not understood. */
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
  if (!Number.isSafeInteger(epoch) || epoch < 0) throw new Error('--epoch must be a whole number, 0 or more.')
  return {
    epoch,
    root: values.root ?? INSIDE.root,
    state: values.state ?? INSIDE.state,
    resume: values.resume,
    hide: values.hide
  }
}
