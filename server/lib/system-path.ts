/** Folders that only the system's administrator can write to. */
export const SYSTEM_FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/run/current-system/sw/bin']

/**
 * The PATH for programs that this process runs by name for itself. The person's own PATH often starts with folders that an MCP server
 * can write to, and a program that it puts there would run without isolation.
 */
export const SYSTEM_PATH = SYSTEM_FOLDERS.join(':')
