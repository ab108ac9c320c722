import type { WorkspaceFile } from '../../../contract/rest.ts'
import { nameOf } from './file-paths.ts'

export type TreeRow =
  | { kind: 'file' | 'folder'; file: WorkspaceFile; name: string; depth: number }
  /** Where a folder's rows are cut off. */
  | { kind: 'more'; path: string; depth: number; left: number; isTruncated: boolean }

interface Tree {
  folders: ReadonlyMap<string, { files: readonly WorkspaceFile[]; truncated: boolean }>
  opened: ReadonlySet<string>
  /** How many rows of a folder are shown. */
  limitOf: (path: string) => number
}

/** The rows of an open folder, with those of the open folders in it. */
export function treeRows(tree: Tree, folder = '', depth = 0): TreeRow[] {
  const listing = tree.folders.get(folder)
  if (!listing) return []
  const sorted = listing.files.toSorted(byKindAndName)
  const limit = tree.limitOf(folder)
  const rows = sorted.slice(0, limit).flatMap((file): TreeRow[] => {
    const kind = file.type === 'directory' ? 'folder' : 'file'
    const row: TreeRow = { kind, file, name: nameOf(file.path), depth }
    return kind === 'folder' && tree.opened.has(file.path) ? [row, ...treeRows(tree, file.path, depth + 1)] : [row]
  })
  const left = Math.max(0, sorted.length - limit)
  if (left > 0 || listing.truncated)
    rows.push({ kind: 'more', path: folder, depth, left, isTruncated: listing.truncated })
  return rows
}

const names = new Intl.Collator('en', { numeric: true })

function byKindAndName(a: WorkspaceFile, b: WorkspaceFile): number {
  const kinds = Number(b.type === 'directory') - Number(a.type === 'directory')
  return kinds || names.compare(a.path, b.path) || (a.path < b.path ? -1 : 1)
}
