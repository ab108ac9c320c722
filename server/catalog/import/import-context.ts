/** What is known about the place that a foreign entry comes from. Everything that is absent stays untranslated, and is named. */
export interface ImportContext {
  /** The client whose file it is, as `client-files.ts` names it. */
  client?: string
  home?: string
  /** The folder that the client would call the workspace or the project. */
  workspace?: string
  environment?: Record<string, string | undefined>
  /** The names of the variables in an env file; throws when it can't be read. Absent where files of this machine are none of the asker's business. */
  envFileNames?(file: string): string[]
}
