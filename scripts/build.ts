/**
 * Builds dist/: the workspace server as one file without dependencies, the orchestrator as a bundle, and the page. `npm ci` runs this
 * through `prepare`, so it must be quick and safe to repeat.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type BuildOptions, build, type Plugin } from 'rolldown'
import type { Plugin as PagePlugin } from 'vite'
import { asciiSource } from './ascii-source.ts'
import { compressPage } from './compress-page.ts'
import { writeSbom } from './sbom.ts'
import { noticesText, packagesOf } from './third-party-notices.ts'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')

interface Bundle {
  entry: string
  file: string
  options: BuildOptions
  /** Modules that are imported on demand become separate files. */
  split?: boolean
}

const DAY_MS = 86_400_000
/** npm also runs this when it packs the package, which must not contain files of earlier builds. */
const packing = ['pack', 'publish'].includes(process.env.npm_command ?? '')

/** Every module in a bundle or the page. */
const modules = new Set<string>()

/** Available in a checkout; users of the package can install it. */
const SSH = `module.exports = (options) => {
  let agent
  try {
    agent = require('docker-modem/lib/ssh')
  } catch {
    throw new Error('DOCKER_HOST=ssh:// needs docker-modem beside mcp-orchestrator: run npm install docker-modem.')
  }
  return agent(options)
}`

/**
 * Packages that others load if they find them. Node would look for them in every folder above and in the user's home, where an MCP server
 * could put its own. With the prefix `node:`, it looks in no folder and always throws.
 */
const OPTIONAL = ['bufferutil', 'utf-8-validate', 'supports-color']

const LEAN: BuildOptions = {
  external: ['docker-modem/lib/ssh'],
  plugins: [leanDockerode()],
  // The UMD file that Node would take loads its parts in a way that no bundler can follow.
  resolve: { alias: { 'jsonc-parser': join(root, 'node_modules/jsonc-parser/lib/esm/main.js') } }
}

const bundles: Bundle[] = [
  // The sandbox has no node_modules, and every byte is parsed at the start of every container.
  { entry: 'workspace-server/main.ts', file: 'workspace-server.mjs', options: { output: { minify: true } } },
  // Split into parts, because the S3 client is large and few need it.
  {
    entry: 'server/main.ts',
    file: 'main.mjs',
    split: true,
    options: LEAN
  },
  // Without the workspace, because every client waits for the gateway to start. Split into parts, because in one file Node would
  // load the modules of later parts at startup. Names stay readable in its stack traces.
  {
    entry: 'server/gateway-main.ts',
    file: 'gateway.mjs',
    split: true,
    options: { ...LEAN, output: { minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } } } }
  }
]

/**
 * dockerode loads ssh2 (with native parts) and gRPC (which reads files at run time) at startup. Only DOCKER_HOST=ssh:// needs ssh2,
 * which stays outside the bundle and is loaded on demand. We don't use BuildKit sessions, so gRPC is left out.
 */
function leanDockerode(): Plugin {
  const replaced = [
    { from: 'docker-modem', source: './ssh', code: SSH },
    { from: 'dockerode', source: './session', code: `module.exports = () => { throw new Error('not bundled') }` }
  ]
  return {
    name: 'lean-dockerode',
    resolveId(source, importer) {
      if (OPTIONAL.includes(source)) return { id: `node:${source}`, external: true }
      const index = replaced.findIndex((r) => r.source === source && importer?.includes(`/node_modules/${r.from}/lib/`))
      return index < 0 ? null : `\0lean-dockerode-${index}.cjs`
    },
    load(id) {
      const index = /^\0lean-dockerode-(\d)\.cjs$/.exec(id)?.[1]
      return index === undefined ? null : (replaced[Number(index)]?.code ?? null)
    }
  }
}

async function bundle({ entry, file, options, split = false }: Bundle): Promise<void> {
  const input = join(root, entry)
  if (!existsSync(input)) {
    console.error(`build: ${entry} is not there, dist/${file} left out`)
    return
  }
  // Written to a draft folder and renamed, so that a server or test that starts meanwhile sees the old or the new files, never a
  // mix.
  const draft = join(dist, `.draft-${process.pid}`)
  const parts = file.replace('.mjs', '')
  const chunkFileNames = `${parts}/[hash].mjs`
  const output = { dir: draft, entryFileNames: file, chunkFileNames, format: 'esm', codeSplitting: split } as const
  try {
    const { output: made } = await build({
      cwd: root,
      input,
      platform: 'node',
      logLevel: 'warn',
      ...options,
      output: { ...output, ...options.output }
    })
    remember(made)
    for (const { fileName } of made) await writeAscii(join(draft, fileName))
    if (split) await moveParts(join(draft, parts), join(dist, parts))
    // Last, when all its parts are in place.
    await rename(join(draft, file), join(dist, file))
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
  const { size } = await stat(join(dist, file))
  console.error(`build: dist/${file} ${Math.ceil(size / 1024)} KB`)
}

async function writeAscii(path: string): Promise<void> {
  await writeFile(path, asciiSource(await readFile(path, 'utf8')))
}

/** Old chunks stay for a day, because running processes of an earlier build may still load theirs. */
async function moveParts(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const name of await readdir(to)) {
    const { mtimeMs } = await stat(join(to, name))
    if (Date.now() - mtimeMs >= (packing ? 0 : DAY_MS)) await rm(join(to, name), { force: true })
  }
  for (const name of await readdir(from)) await rename(join(from, name), join(to, name))
}

async function page(): Promise<void> {
  if (!existsSync(join(root, 'web/index.html'))) return
  process.env.NODE_ENV = 'production' // otherwise a test runner that builds would get the page's debug code
  const { build: buildPage } = await import('vite')
  const record: PagePlugin = {
    name: 'record-modules',
    generateBundle(_options, made) {
      remember(Object.values(made))
    }
  }
  const { default: config } = await import('../vite.config.ts')
  const worker = { ...config.worker, plugins: () => [...(config.worker?.plugins?.() ?? []), record] }
  await buildPage({ configFile: join(root, 'vite.config.ts'), logLevel: 'warn', plugins: [record], worker })
  await compressPage(join(dist, 'web'))
  console.error('build: dist/web')
}

function remember(made: { type: string; moduleIds?: string[] }[]): void {
  for (const id of made.flatMap(({ moduleIds = [] }) => moduleIds)) modules.add(id)
}

async function notices(): Promise<void> {
  const packages = packagesOf(modules, root)
  await writeFile(join(dist, 'THIRD-PARTY-NOTICES.txt'), noticesText(packages))
  console.error(`build: dist/THIRD-PARTY-NOTICES.txt ${packages.length} packages`)
}

for (const each of bundles) await bundle(each)
await page()
await notices()
if (packing) console.error(`build: dist/sbom.json ${writeSbom(root)} packages`)
