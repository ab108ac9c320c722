import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'

/**
 * SHA-256 of the Node binaries that the pinned package fetches when it is installed: the lock file does not cover them. A new
 * version gets new lines here; `tests/supply-chain.test.ts` holds them to package.json.
 */
export const NODE_BINARIES: Record<string, Record<string, string>> = {
  '24.21.0': {
    'linux-x64': '7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c',
    'linux-arm64': '0f8949d1028f6d61506b2d5bc57e7e6fe893d7b1997509b7847294fc9c616584'
  }
}

/** Says which Node this is; throws when it should be one that is known here and is not. */
export async function describeNode(path = process.execPath, version = process.versions.node): Promise<string> {
  const platform = `${process.platform}-${process.arch}`
  const known = NODE_BINARIES[version]?.[platform]
  if (known === undefined) return `${version}, ${platform}: not one whose hash is known here`
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  const found = hash.digest('hex')
  if (found === known) return `${version}, ${platform}, its hash is as it should be`
  // A build of somebody else's, a distribution's for one, is no attack by itself; in the package's own place it is no accident.
  if (!path.includes('/node_modules/')) return `${version} of this machine, not the one that comes with the package`
  throw new Error(
    `${path} is not the Node ${version} that was pinned (sha256 ${found}): remove node_modules and install again.`
  )
}
