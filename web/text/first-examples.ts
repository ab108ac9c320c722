import type { ServerSummary } from '../../contract/servers/servers.ts'

/** Examples that the demo model understands. */
const DEMO = ['list the files', 'write hello.txt: Hello from the sandbox', 'run uname -a && python3 --version']
const MODEL = [
  'What can you do in this workspace?',
  'Write a Python script that prints the first 20 prime numbers, run it, and explain the result.',
  'Make a small web page about the moon, as one HTML file.'
]
const MAX_SERVERS = 2

/** Requests for an empty chat, which the active model can fulfil with the servers that are connected. */
export function firstExamples(isDemo: boolean, servers: readonly ServerSummary[]): string[] {
  if (isDemo) return DEMO
  const ready = servers.filter(({ enabled, health, tools }) => enabled && health === 'ok' && tools.length > 0)
  const asks = ready
    .slice(0, MAX_SERVERS)
    .map(({ name }) => `What can you do with the tools of “${name}”? Show me one that only reads.`)
  return [...asks, ...MODEL].slice(0, MODEL.length + 1)
}
