import type { ToolResult } from '../../sandbox/port.ts'
import type { Workspace } from '../sandboxes/open-workspace.ts'
import type { TransferSessions } from './workspace-transfer.ts'

interface Read {
  path: string
  offset: number
  limit: number
}

/** Sessions with one sandbox that has these files; `read` may return or throw something else. */
export function fakeWorkspace(
  files: Record<string, string>,
  read: (input: Read) => ToolResult | undefined = () => undefined
): TransferSessions {
  const list = () => ({
    entries: Object.entries(files).map(([path, { length: size }]) => ({ path, type: 'file', size, mtimeMs: 7 }))
  })
  const part = ({ path, offset, limit }: Read) => {
    const bytes = Buffer.from(files[path] ?? '')
    return { content: bytes.subarray(offset, offset + limit).toString('base64'), size: bytes.length }
  }
  const workspace: Workspace = {
    containerId: 'fake',
    epoch: 1,
    listTools: async () => [],
    callUnrecorded: async (name, args) => {
      if (name === 'list_files') return { content: [], structuredContent: list() }
      const input = { path: String(args.path), offset: Number(args.offset), limit: Number(args.limit) }
      return read(input) ?? { content: [], structuredContent: part(input) }
    },
    saveFiles: async () => {},
    applyChanges: async () => null,
    change: async () => ({}),
    recordChange: async () => {},
    resolve: async () => []
  }
  const openSaved = () => Promise.reject(new Error('not open'))
  return { run: (_, job) => job(workspace), state: () => 'running', openSaved }
}
