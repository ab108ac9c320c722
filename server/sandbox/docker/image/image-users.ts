import type { UidRange } from '../../uid-range.ts'

/** /etc/passwd and /etc/group of an image. */
export interface UserFiles {
  passwd: string
  group: string
}

/**
 * Adds a line for every user id that a sandbox may get to the base's files, because programs look up their own name and home
 * (`os.userInfo()`, git, ssh). The lines are part of the image because commands must not be able to write them: the engine's
 * runtime looks up the user there when it starts a process in the container.
 */
export function withUsers(base: UserFiles, { first, last }: UidRange): UserFiles {
  const passwd = lines(base.passwd)
  const group = lines(base.group)
  const uids = idsOf(passwd)
  const gids = idsOf(group)
  if (!uids.has('0')) passwd.unshift('root:x:0:0:root:/root:/bin/bash')
  if (!gids.has('0')) group.unshift('root:x:0:')
  for (let id = first; id <= last; id++) {
    if (!uids.has(String(id))) passwd.push(`sandbox-${id}:x:${id}:${id}::/workspace:/bin/bash`)
    if (!gids.has(String(id))) group.push(`sandbox-${id}:x:${id}:`)
  }
  return { passwd: `${passwd.join('\n')}\n`, group: `${group.join('\n')}\n` }
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '')
}

function idsOf(entries: string[]): Set<string | undefined> {
  return new Set(entries.map((entry) => entry.split(':')[2]))
}
