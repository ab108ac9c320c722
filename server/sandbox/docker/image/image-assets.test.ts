import { expect, test } from 'vitest'
import { baseImageName, type ImageAssets, sandboxImageName } from './image-assets.ts'

const assets: ImageAssets = {
  idle: Buffer.from('idle'),
  server: Buffer.from('server'),
  packages: Buffer.from('bash\n'),
  prepareBase: Buffer.from('prepare'),
  baseDockerfile: Buffer.from('FROM x'),
  node: { version: '24.0.0', file: { path: '/somewhere/node', size: 1, arch: 'amd64' }, publicImage: 'node:24' },
  probes: { amd64: Buffer.from('probe') }
}
const name = (changed: Partial<ImageAssets> = {}, recipe = 'recipe') => {
  const all = { ...assets, ...changed }
  return sandboxImageName(all, baseImageName(all, recipe), 'FROM base')
}

test('any change of an input gives the image another name', () => {
  const names = [
    name(),
    name({ idle: Buffer.from('idle2') }),
    name({ server: Buffer.from('server2') }),
    name({ packages: Buffer.from('bash\njq\n') }),
    name({ prepareBase: Buffer.from('prepare2') }),
    name({ probes: { amd64: Buffer.from('probe2') } }),
    name({ baseDockerfile: Buffer.from('FROM y') }),
    name({ node: { ...assets.node, version: '24.0.1' } }),
    name({ node: { ...assets.node, file: { path: '/somewhere/node', size: 2, arch: 'amd64' } } }),
    name({ node: { ...assets.node, file: null } }),
    name({}, 'recipe2'),
    sandboxImageName(assets, baseImageName(assets, 'recipe'), 'FROM base\nUSER root'),
    sandboxImageName(assets, 'sha256:own', 'FROM base')
  ]
  expect(new Set(names).size).toBe(names.length)
})

test('the name is a valid one, and does not depend on where the files are', () => {
  expect(name()).toMatch(/^mcp-orchestrator-sandbox:[0-9a-f]{16}$/)
  expect(name({ node: { ...assets.node, file: { path: '/elsewhere', size: 1, arch: 'amd64' } } })).toBe(name())
})

test('bytes that move from one input to the next change the name', () => {
  const shifted = { idle: Buffer.from('idles'), server: Buffer.from('erver') }
  expect(name(shifted)).not.toBe(name())
})
