import { beforeEach, expect, it } from 'vitest'
import { pngOf } from '../../../tests/support/tiny-png.ts'
import { FakeContentStore } from '../../storage/fake-content-store.ts'
import { keepImages } from './keep-images.ts'

let contents: FakeContentStore
beforeEach(() => {
  contents = new FakeContentStore()
})
const image = pngOf(30, 20)
const data = image.toString('base64')
const keep = (...content: unknown[]) => keepImages(contents, 's', content)

it('stores images and PDFs, whatever the tool calls them', async () => {
  const pdf = Buffer.from('%PDF-1.7 …')
  const kept = await keep(
    { type: 'text', text: 'Here:' },
    { type: 'image', mimeType: 'text/html', data },
    { type: 'resource', resource: { uri: 'file:///a.pdf', mimeType: 'application/pdf', blob: pdf.toString('base64') } }
  )
  expect(kept).toMatchObject([
    { type: 'text', text: 'Here:' },
    {
      type: 'image',
      mimeType: 'image/png',
      file: { mediaType: 'image/png', width: 30, height: 20, size: image.length }
    },
    { type: 'file', mimeType: 'application/pdf', name: 'file:///a.pdf', file: { mediaType: 'application/pdf' } }
  ])
  expect(JSON.stringify(kept)).not.toContain(data)
  const [, block] = kept as { file: { id: string } }[]
  expect(await contents.getContent('s', block?.file.id ?? '')).toEqual(image)
})

it.each([
  ['an SVG', { type: 'image', mimeType: 'image/png', data: Buffer.from('<svg onload="x">').toString('base64') }],
  ['a broken image', { type: 'image', mimeType: 'image/png', data: image.subarray(0, 20).toString('base64') }],
  ['audio', { type: 'audio', mimeType: 'audio/wav', data }],
  ['nonsense', null],
  ['a resource of text', { type: 'resource', resource: { uri: 'x', text: 'hello' } }]
])('leaves %s as it is', async (_, part) => expect(await keep(part)).toEqual([part]))

// Checked: if other parts are kept as they are, the name is in the log.
it('lets no tool refer to what is stored for others', async () => {
  const id = await contents.putContent('s', image)
  const forged = { type: 'image', mimeType: 'image/png', file: { id, mediaType: 'image/png', size: 1 } }
  expect(await keep(forged)).toEqual([{ type: 'image', mimeType: 'image/png' }])
})

it('stores a limited number of images of one result', async () => {
  const kept = await keep(...Array.from({ length: 25 }, () => ({ type: 'image', mimeType: 'image/png', data })))
  expect(kept.filter((part) => 'file' in (part as object))).toHaveLength(20)
})
