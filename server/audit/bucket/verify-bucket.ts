import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { AppError } from '../../lib/errors.ts'
import type { ObjectStore } from '../../storage/objects/object-store.ts'
import { listAuditFiles } from '../audit-files.ts'
import { type VerifiedChain, verifyAudit } from '../verify-audit.ts'
import { AuditMirror } from './audit-mirror.ts'
import { TOO_MANY } from './audit-segments.ts'

export interface VerifyOptions {
  objects: Pick<ObjectStore, 'list' | 'read'>
  prefix: string
  /** The folder of this machine, whose last rows may not be in the bucket yet. */
  own: string
  /** A folder that does not exist yet; it is removed at the end. */
  work: string
}

/** Checks the chains of all instances: everything is read from the bucket again, and compared with the files of this machine. */
export async function verifyBucket({ objects, prefix, own, work }: VerifyOptions): Promise<VerifiedChain[]> {
  try {
    const mirror = new AuditMirror({ objects, prefix, dir: work, maxBytes: Number.POSITIVE_INFINITY })
    if ((await mirror.sync()).isCut) {
      throw new AppError('unavailable', 'audit_too_large', `The audit log can't be checked: it has ${TOO_MANY}`)
    }
    const differing = new Set<string>()
    for (const { path, chain } of listAuditFiles([own])) {
      const copied = join(work, basename(path))
      const mine = readFileSync(path)
      const copy = existsSync(copied) ? readFileSync(copied) : Buffer.alloc(0)
      // The longer one has all rows if it begins with the other one.
      const common = Math.min(mine.length, copy.length)
      if (!mine.subarray(0, common).equals(copy.subarray(0, common))) differing.add(chain)
      if (mine.length > copy.length) writeFileSync(copied, mine, { mode: 0o600 })
    }
    return verifyAudit([work]).map((chain) => (differing.has(chain.chain) ? broken(chain) : chain))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function broken(chain: VerifiedChain): VerifiedChain {
  const reason = 'the copy in the bucket differs from the file on this machine'
  return { ...chain, state: 'broken', problems: [...chain.problems, { file: '', line: 0, reason }] }
}
