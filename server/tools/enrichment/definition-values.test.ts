import { expect, it, vi } from 'vitest'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { DefinitionValues } from './definition-values.ts'

function values(hashes: string[], keyValues = fakeKeyValueStore()) {
  const toolOf = (hash: string) => ({
    server: 's',
    tool: { name: hash, description: '', inputSchema: {}, hash }
  })
  const warn = vi.fn()
  const known = new DefinitionValues<string>({
    ...{ keyValues, space: 'x', most: 3, warn },
    tools: () => hashes.map(toolOf),
    write: (value) => value,
    read: (value) => (typeof value === 'string' ? value : undefined),
    async compute(missing) {
      for (const { tool } of missing) await known.save(tool.hash, tool.hash.toUpperCase())
    }
  })
  return { keyValues, known, warn }
}

it('returns what was saved, and ignores unreadable values', async () => {
  const { keyValues, known } = values([])
  await known.save('a', 'A')
  await keyValues.set('x', 'broken', 7)
  const { known: other } = values(['a', 'broken', 'gone'], keyValues)
  await other.restore()
  expect(['a', 'broken', 'gone'].map((hash) => other.get(hash))).toEqual(['A', undefined, undefined])
})

it('keeps a limited number of rows, including all that are in use', async () => {
  const { keyValues, known: others } = values([])
  for (const hash of ['c', 'd', 'e']) await others.save(hash, hash)
  const { known, warn } = values(['a', 'b'], keyValues)
  known.wake()
  await vi.waitFor(async () => expect(await keyValues.list('x-written')).toHaveLength(3))
  await known.close()
  const left = (await keyValues.list('x')).map(({ key }) => key)
  expect(left).toHaveLength(3)
  expect(left).toEqual(expect.arrayContaining(['a', 'b']))
  expect(warn).not.toHaveBeenCalled()
})
