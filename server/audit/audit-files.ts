import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type ChainHead, parseRow, type Row } from './audit-row.ts'

/** Calls and routing decisions have separate chains, each with a size limit, so that many decisions can't push calls out. */
export type AuditFamily = 'calls' | 'routes'

/** One file of a chain. A chain begins in file number 1 and continues in the next one when a file is full. */
export interface AuditFile {
  path: string
  /** Files of earlier versions hold both kinds and count as `calls`. */
  family: AuditFamily
  chain: string
  number: number
  bytes: number
  modifiedAt: number
}

const NAME = /^([0-9a-f]{16})-(\d{6})(\.routes)?\.jsonl$/
const BLOCK = 64 * 1024

export function auditFileName(chain: string, number: number, family: AuditFamily = 'calls'): string {
  return `${chain}-${String(number).padStart(6, '0')}${family === 'routes' ? '.routes' : ''}.jsonl`
}

export function isAuditFileName(name: string): boolean {
  return NAME.test(name)
}

/** The files in the folders, oldest first. */
export function listAuditFiles(dirs: readonly string[]): AuditFile[] {
  return dirs.flatMap(filesIn).sort((a, b) => a.modifiedAt - b.modifiedAt || a.number - b.number)
}

function filesIn(dir: string): AuditFile[] {
  let names: string[]
  try {
    names = readdirSync(dir)
  } catch {
    return []
  }
  return names.flatMap((name) => {
    const [, chain, number, routes] = NAME.exec(name) ?? []
    const family: AuditFamily = routes === undefined ? 'calls' : 'routes'
    if (chain === undefined) return []
    const path = join(dir, name)
    try {
      const stat = statSync(path)
      if (!stat.isFile()) return []
      const { size, mtimeMs } = stat
      return [{ path, family, chain, number: Number(number), bytes: size, modifiedAt: mtimeMs }]
    } catch {
      return []
    }
  })
}

/** The files of each chain, in the order of the chain. */
export function byChain(files: AuditFile[]): Map<string, AuditFile[]> {
  const chains = Map.groupBy(files, ({ chain }) => chain)
  for (const own of chains.values()) own.sort((a, b) => a.number - b.number)
  return chains
}

/** The last complete row. */
export function lastRowOf(path: string): Row | undefined {
  for (const line of linesBackwards(path)) {
    const row = parseRow(line)
    if (row) return row
  }
  return undefined
}

export function headOf(path: string): ChainHead | undefined {
  const row = lastRowOf(path)
  return row && { chain: row.chain, seq: row.seq, hash: row.hash }
}

/** undefined if the file is gone or can't be read. */
export function rowsOf(path: string): Row[] | undefined {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line) => (line === '' ? [] : (parseRow(line) ?? [])))
  } catch {
    return undefined
  }
}

/** Yields lines from the end, block by block, so that reading the last rows does not read the whole file. A missing file has no lines. */
export function* linesBackwards(path: string): Generator<string> {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    return
  }
  try {
    let end = fstatSync(file).size
    let rest = Buffer.alloc(0)
    while (end > 0) {
      const start = Math.max(0, end - BLOCK)
      const block = Buffer.alloc(end - start)
      readSync(file, block, 0, block.length, start)
      end = start
      const joined = Buffer.concat([block, rest])
      const cut = start === 0 ? 0 : joined.indexOf(0x0a) + 1
      // The line is longer than the block; its beginning comes in an earlier one.
      if (start > 0 && cut === 0) {
        rest = joined
        continue
      }
      rest = joined.subarray(0, cut)
      const lines = joined.subarray(cut).toString('utf8').split('\n')
      for (const line of lines.reverse()) if (line !== '') yield line
    }
  } finally {
    closeSync(file)
  }
}
