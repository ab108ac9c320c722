import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { describeNode, NODE_BINARIES } from './doctor-node.ts'

const dir = temporaryFolder()
const [version = ''] = Object.keys(NODE_BINARIES)
afterAll(() => rmSync(dir, { recursive: true }))

function binary(folder: string): string {
  mkdirSync(join(dir, folder), { recursive: true })
  writeFileSync(join(dir, folder, 'node'), 'another program')
  return join(dir, folder, 'node')
}

it('refuses another program in the place of the pinned Node', async () => {
  await expect(describeNode(binary('node_modules/node/bin'), version)).rejects.toThrow(/is not the pinned Node/)
})

it("accepts the machine's own Node, and says so", async () => {
  expect(await describeNode(binary('bin'), version)).toMatch(/from this machine/)
  expect(await describeNode(binary('bin'), '99.0.0')).toMatch(/hash not known/)
})
