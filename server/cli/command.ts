import type { SettingName, Settings } from '../config/settings.ts'

/** What stands on the command line beside the settings. */
export interface CommandInput {
  words: string[]
  /** Given flags of the command's own; those that may be repeated are lists. */
  flags: Record<string, string | boolean | string[] | undefined>
  /** After a lone `--`: not ours to read. */
  rest: string[]
  /** Whether the user has named it, as a flag or a variable; else it is a default. */
  isNamed(setting: SettingName): boolean
}

export interface CommandFlag {
  type: 'boolean' | 'string'
  multiple?: true
  help: string
  /** The actions that take it; without, all do. */
  for?: string[]
}

export interface Command {
  name: string
  summary: string
  /** The words that it takes, as help shows them, each line beginning with its action; without, it takes none. */
  usage?: string[]
  /** The settings that its help lists; without, all of them. */
  mainSettings?: SettingName[]
  flags?: Record<string, CommandFlag>
  /** What to do instead, where arguments that can't be read are a known mistake. */
  advice?(args: string[]): string | undefined
  /** Where a setting has another default than usual. */
  defaults?(env: Record<string, string | undefined>): Partial<Record<SettingName, string>>
  /** Started by other programs in folders that are not the user's own: what lies there is not asked. */
  ignoresDotenv?: true
  /** When stderr is not a terminal, everything on it is JSON lines, errors included. */
  logsJson?: true
  /** Returns the exit code. */
  run(settings: Settings, input: CommandInput): Promise<number>
}
