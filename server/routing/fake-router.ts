import type { Router } from './port.ts'

/** Finds tools by their exact names only. */
export function fakeRouter(): Router {
  const servers = new Map<string, { server: string; name: string; description: string }[]>()
  return {
    setServer: (server, tools) => void servers.set(server, tools),
    removeServer: (server) => void servers.delete(server),
    find(request, { limit = 5, server } = {}) {
      const all = [...servers].filter(([name]) => server === undefined || name === server).flatMap(([, tools]) => tools)
      const words = request.toLowerCase().split(/\W+/)
      const found = all.filter(({ name }) => name.split(/\W|_/).some((part) => words.includes(part)))
      const matches = found.map(({ server: of, name, description }) => ({
        server: of,
        tool: name,
        confidence: 1 / found.length,
        description
      }))
      return { matches: matches.slice(0, limit), abstained: found.length !== 1 }
    },
    learn: () => {},
    usage: () => [],
    forgetUsage: () => {}
  }
}
