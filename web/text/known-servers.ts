/**
 * Well-known MCP servers that can be added with one click. Every package is in the npm registry, and options are as its README has them.
 * Nothing here runs before the person has seen the exact command.
 */
interface Need {
  /** The name of the variable or header, or of the argument in the form. */
  id: string
  label: string
  as: 'argument' | 'variable' | 'bearer'
  isSecret?: boolean
  isOptional?: boolean
  placeholder?: string
}

export interface KnownServer {
  name: string
  title: string
  /** One sentence about what the server can do. */
  about: string
  /** A note for the person before they add it. */
  note?: string
  run: { package: string; args?: string[] } | { url: string }
  needs: Need[]
}

const key = (id: string, label: string): Need => ({ id, label, as: 'variable', isSecret: true })

export const KNOWN_SERVERS: readonly KnownServer[] = [
  {
    name: 'filesystem',
    title: 'Filesystem',
    about: 'Reads, writes, moves and searches files in one folder of this machine.',
    run: { package: '@modelcontextprotocol/server-filesystem' },
    needs: [{ id: 'folder', label: 'Folder that it may use', as: 'argument', placeholder: '/home/me/notes' }]
  },
  {
    name: 'memory',
    title: 'Memory',
    about: 'Remembers facts between conversations, in a graph of people, things and relations.',
    run: { package: '@modelcontextprotocol/server-memory' },
    needs: []
  },
  {
    name: 'sequential-thinking',
    title: 'Sequential thinking',
    about: 'Helps a model to solve a problem step by step, with revisions and branches.',
    run: { package: '@modelcontextprotocol/server-sequential-thinking' },
    needs: []
  },
  {
    name: 'everything',
    title: 'Everything',
    about: 'Shows every feature of MCP: tools, resources, prompts and questions. For trying things out.',
    run: { package: '@modelcontextprotocol/server-everything' },
    needs: []
  },
  {
    name: 'github',
    title: 'GitHub',
    about: 'Reads repositories, and works with issues, pull requests and workflow runs. Runs at GitHub.',
    run: { url: 'https://api.githubcopilot.com/mcp/' },
    needs: [{ id: 'GITHUB_TOKEN', label: 'Personal access token', as: 'bearer', isSecret: true }]
  },
  {
    name: 'playwright',
    title: 'Playwright',
    about: 'Opens web pages in a browser, clicks, types, and reads what they show.',
    note: 'It needs a browser on this machine, and network.',
    run: { package: '@playwright/mcp', args: ['--headless', '--isolated'] },
    needs: []
  },
  {
    name: 'chrome-devtools',
    title: 'Chrome DevTools',
    about: 'Debugs web pages in Chrome: console, network, screenshots and performance traces.',
    note: 'It needs Chrome on this machine.',
    run: { package: 'chrome-devtools-mcp', args: ['--headless', '--isolated'] },
    needs: []
  },
  {
    name: 'context7',
    title: 'Context7',
    about: 'Looks up current documentation and examples of libraries.',
    run: { package: '@upstash/context7-mcp' },
    needs: [{ ...key('CONTEXT7_API_KEY', 'API key, for more requests'), isOptional: true }]
  },
  {
    name: 'eslint',
    title: 'ESLint',
    about: 'Checks JavaScript and TypeScript files with ESLint.',
    run: { package: '@eslint/mcp' },
    needs: []
  },
  {
    name: 'mongodb',
    title: 'MongoDB',
    about: 'Queries a MongoDB database and describes its collections. Only reads.',
    run: { package: 'mongodb-mcp-server', args: ['--readOnly'] },
    needs: [key('MDB_MCP_CONNECTION_STRING', 'Connection string')]
  },
  {
    name: 'chart',
    title: 'Charts',
    about: 'Draws charts of many kinds from data.',
    note: 'The data of a chart is sent to a service of AntV, which draws it.',
    run: { package: '@antv/mcp-server-chart' },
    needs: []
  },
  {
    name: 'notion',
    title: 'Notion',
    about: 'Searches, reads and writes pages and databases in Notion.',
    run: { package: '@notionhq/notion-mcp-server' },
    needs: [key('NOTION_TOKEN', 'Token of an integration')]
  },
  {
    name: 'brave-search',
    title: 'Brave Search',
    about: 'Searches the web, news, images and places.',
    run: { package: '@brave/brave-search-mcp-server' },
    needs: [key('BRAVE_API_KEY', 'API key')]
  },
  {
    name: 'tavily',
    title: 'Tavily',
    about: 'Searches the web and extracts the content of pages.',
    run: { package: 'tavily-mcp' },
    needs: [key('TAVILY_API_KEY', 'API key')]
  },
  {
    name: 'firecrawl',
    title: 'Firecrawl',
    about: 'Searches the web, and turns pages and whole sites into clean text.',
    run: { package: 'firecrawl-mcp' },
    needs: [key('FIRECRAWL_API_KEY', 'API key')]
  }
]

/** An entry of the registry. A secret that was not entered becomes a placeholder, so that it can be stored later. */
export function knownEntry(server: KnownServer, values: Record<string, string>): Record<string, unknown> {
  const { run, needs, about } = server
  const given = ({ id, isSecret, isOptional }: Need) =>
    values[id]?.trim() || (isSecret && !isOptional ? `\${secret:${id}}` : '')
  const of = (as: Need['as']) => needs.filter((need) => need.as === as && given(need) !== '')
  const env = Object.fromEntries(of('variable').map((need) => [need.id, given(need)]))
  const headers = Object.fromEntries(of('bearer').map((need) => ['Authorization', `Bearer ${given(need)}`]))
  if ('url' in run) return { url: run.url, headers, description: about }
  const args = ['-y', run.package, ...(run.args ?? []), ...of('argument').map(given)]
  return { command: 'npx', args, ...(Object.keys(env).length > 0 ? { env } : {}), description: about }
}

/** Labels of the values that must be entered before it can be added. Secrets can follow later. */
export function missingNeeds({ needs }: KnownServer, values: Record<string, string>): string[] {
  const isMissing = ({ id, isSecret, isOptional }: Need) => !isSecret && !isOptional && !values[id]?.trim()
  return needs.filter(isMissing).map(({ label }) => label)
}
