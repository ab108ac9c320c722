import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { AppError } from '../../../lib/errors.ts'
import { packageRoot } from '../../../lib/files/package-root.ts'

/** Every sandbox image carries this label, with its own name as the value. */
export const IMAGE_LABEL = 'mcp-orchestrator.image'

/** Everything that goes into the image; its hash is the image's name. */
export interface ImageAssets {
  idle: Buffer
  server: Buffer
  packages: Buffer
  prepareBase: Buffer
  baseDockerfile: Buffer
  node: NodeBinary
  /** Keyed by the engine's name for the architecture. Other architectures have no probe. */
  probes: Record<string, Buffer>
}

interface NodeBinary {
  version: string
  /** A Linux binary on this machine. If it is null, the public image's Node is used. */
  file: { path: string; size: number; arch: string } | null
  publicImage: string
}

export async function readImageAssets(root: string = packageRoot()): Promise<ImageAssets> {
  const server = await readFile(join(root, 'dist/workspace-server.mjs')).catch((cause: unknown) => {
    const message = 'dist/workspace-server.mjs is missing: run `npm run build`, or install the package again.'
    throw new AppError('internal', 'not_built', message, { cause })
  })
  const image = (file: string) => readFile(join(root, 'images', file))
  const [idle, packages, prepareBase, baseDockerfile, node, amd64, arm64] = await Promise.all([
    image('idle'),
    image('packages.txt'),
    image('prepare-base.sh'),
    image('base.Dockerfile'),
    findNode(root),
    image('kernel-probe/amd64'),
    image('kernel-probe/arm64')
  ])
  return { idle, server, packages, prepareBase, baseDockerfile, node, probes: { amd64, arm64 } }
}

/**
 * Computes the name without the engine, because it must be known while the engine is down. `recipe` covers everything else that
 * affects the content.
 */
export function sandboxImageName(assets: ImageAssets, base: string, recipe: string): string {
  const { version, file } = assets.node
  const files = [assets.idle, assets.server, ...Object.values(assets.probes)]
  const inputs = [recipe, ...files, base, version, `${file?.arch} ${file?.size}`]
  return `mcp-orchestrator-sandbox:${hash(inputs)}`
}

export function baseImageName(assets: ImageAssets, recipe: string): string {
  return `mcp-orchestrator-base:${hash([recipe, assets.packages, assets.prepareBase, assets.baseDockerfile])}`
}

export function repoAndTag(name: string): { repo: string; tag: string } {
  const [repo = '', tag = 'latest'] = name.split(':')
  return { repo, tag }
}

function hash(inputs: (string | Buffer)[]): string {
  const digest = createHash('sha256')
  // The length prefixes keep different lists of inputs from hashing to the same value.
  for (const input of inputs) digest.update(`${Buffer.byteLength(input)}:`).update(input)
  return digest.digest('hex').slice(0, 16)
}

async function findNode(root: string): Promise<NodeBinary> {
  const manifest = createRequire(join(root, 'package.json')).resolve('node/package.json')
  const { version } = JSON.parse(await readFile(manifest, 'utf8'))
  const publicImage = `node:${version}-bookworm-slim`
  if (process.platform !== 'linux') return { version, file: null, publicImage }
  const path = join(dirname(manifest), 'bin/node')
  // The file is missing if npm was told not to run install scripts. We don't use the machine's own Node: it may need libraries
  // that the image lacks.
  const found = await stat(path).catch(() => null)
  return { version, file: found && { path, size: found.size, arch: engineArch(process.arch) }, publicImage }
}

/** Translates Node's name for an architecture to the engine's. */
function engineArch(arch: string): string {
  return arch === 'x64' ? 'amd64' : arch
}
