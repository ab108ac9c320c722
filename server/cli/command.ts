import type { Settings } from '../config/settings.ts'

export interface Command {
  name: string
  summary: string
  /** Returns the exit code. */
  run(settings: Settings): Promise<number>
}
