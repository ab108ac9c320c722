import type { ToolSource } from '../calls/tool-source.ts'
import { CHAT_KEY } from '../connections/asking/call-scopes.ts'
import type { Connections } from '../connections/connections.ts'
import { isRecord } from '../lib/is-record.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'
import { isListedReader } from '../policy/tool-effects.ts'
import type { ToolResult } from '../sandbox/port.ts'
import { serverTalk } from './server-talk.ts'
import type { ToolIndex } from './tool-index.ts'

type Core = () => Promise<{
  index: Pick<ToolIndex, 'tools' | 'offer' | 'entry'>
  connections: Pick<Connections, 'list' | 'call' | 'runningTools' | 'chatLane'>
}>

const LIST_MS = 10_000

/** Offers a server of the registry to the chat. Listing a server that was seen before starts nothing. */
export function serverToolSource(server: string, core: Core, alternatives?: readonly string[]): ToolSource {
  return {
    server,
    alternatives,
    async list({ live, ...asking }) {
      const list = async (signal: AbortSignal) => {
        const { index, connections } = await core()
        const caller = { ...asking.caller, laneId: connections.chatLane }
        // The offer must match what the call is checked against, so the caller's own connection comes before the shared index.
        const seen = () => index.offer(server, CHAT_KEY) ?? index.tools(server)
        const known = live ? undefined : (connections.runningTools(server, caller) ?? seen())
        const tools = known ?? (await connections.list(server, { caller, signal }))
        const { fingerprint, readOnly = [] } = index.entry(server) ?? {}
        return tools.map((tool) => ({ ...tool, entry: fingerprint, isListedReader: isListedReader(readOnly, tool) }))
      }
      // After an approval, the server may take as long as it needs to start.
      if (live) return list(asking.signal)
      return withDeadline({ what: `${server} to list its tools`, ms: LIST_MS, signal: asking.signal }, list)
    },
    async call({ caller, name, args, signal, talk }): Promise<ToolResult> {
      const { connections } = await core()
      const { result } = await connections.call(server, {
        caller: { ...caller, laneId: connections.chatLane },
        tool: name,
        args,
        // The approval covers one execution, not two.
        mustNotRepeat: true,
        signal,
        ...serverTalk(talk)
      })
      const { content, structuredContent, isError } = result
      return {
        content: Array.isArray(content) ? content : [],
        ...(isRecord(structuredContent) ? { structuredContent } : {}),
        ...(isError === true ? { isError } : {})
      }
    }
  }
}
