/** Known facts about the source of a foreign entry. A placeholder that needs something unknown is not translated, but reported. */
export interface ImportContext {
  /** The client that the file belongs to, as `client-files.ts` names it. */
  client?: string
  home?: string
  /** The folder that the client would call the workspace or the project. */
  workspace?: string
  environment?: Record<string, string | undefined>
  /**
   * Returns the names of the variables in an env file; throws if it can't be read. Missing if the requester may not read files of
   * this machine.
   */
  envFileNames?(file: string): string[]
}
