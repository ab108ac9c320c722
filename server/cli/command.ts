import { terminalText } from '../../contract/hidden-characters.ts'
import type { SettingName, Settings } from '../config/settings.ts'

/** The parts of the command line that are not settings. */
export interface CommandInput {
  words: string[]
  /** The command's own flags; flags that may be repeated are lists. */
  flags: Record<string, string | boolean | string[] | undefined>
  /** The words after `--`, which we don't parse. */
  rest: string[]
  /** Whether the user set it, as a flag or a variable. */
  isNamed(setting: SettingName): boolean
}

export interface CommandFlag {
  type: 'boolean' | 'string'
  multiple?: true
  help: string
  /** The actions that accept this flag; all by default. */
  for?: string[]
}

export interface Command {
  name: string
  summary: string
  /** The words that the command accepts, as the help shows them. Each line begins with its action. */
  usage?: string[]
  /** The settings that its help lists; all by default. */
  mainSettings?: SettingName[]
  flags?: Record<string, CommandFlag>
  /** Advice for a common mistake in the arguments. */
  advice?(args: string[]): string | undefined
  /** Defaults that differ from the usual ones. */
  defaults?(env: Record<string, string | undefined>): Partial<Record<SettingName, string>>
  /** Don't read `.env`: other programs start this command in any folder. */
  ignoresDotenv?: true
  /** If stderr is not a terminal, write everything to it as JSON lines, including errors. */
  logsJson?: true
  /** Returns the exit code. */
  run(settings: Settings, input: CommandInput): Promise<number>
}

/** Tells what a command does. A text may contain a path, or an error of another program. */
export function say(text: string): void {
  process.stderr.write(`${terminalText(text)}\n`)
}
