import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'

/**
 * SHA-256 of the Node binaries that the pinned package downloads when it is installed: the lock file does not cover them. Add lines for
 * every new version; `tests/supply-chain.test.ts` checks them against package.json.
 */
export const NODE_BINARIES: Record<string, Record<string, string>> = {
  '24.21.0': {
    'linux-x64': '7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c',
    'linux-arm64': '0f8949d1028f6d61506b2d5bc57e7e6fe893d7b1997509b7847294fc9c616584'
  }
}

/** Describes the Node that runs; throws if it replaced the pinned binary. */
export async function describeNode(path = process.execPath, version = process.versions.node): Promise<string> {
  const platform = `${process.platform}-${process.arch}`
  const known = NODE_BINARIES[version]?.[platform]
  if (known === undefined) return `${version}, ${platform}: hash not known`
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  const found = hash.digest('hex')
  if (found === known) return `${version}, ${platform}, hash verified`
  // Another build, such as a distribution's, is no attack by itself. A different binary inside node_modules is suspicious.
  if (!path.includes('/node_modules/')) return `${version} from this machine, not the one in the package`
  throw new Error(`${path} is not the pinned Node ${version} (sha256 ${found}): remove node_modules and install again.`)
}
