import cookie from '@fastify/cookie'
import fastify, { type FastifyInstance } from 'fastify'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { pngOf } from '../../../tests/support/tiny-png.ts'
import { AppError } from '../../lib/errors.ts'
import { readFile, removeUnsent, storeFile } from '../../sessions/attachments/stored-file.ts'
import { FakeContentStore } from '../../storage/fake-content-store.ts'
import { registerAttachmentRoutes } from './attachment-routes.ts'

const MAX_BYTES = 5000
let server: FastifyInstance
let isAllowed: boolean
beforeEach(async () => {
  isAllowed = true
  const contents = new FakeContentStore()
  server = fastify()
  await server.register(cookie)
  const check = async () => {
    if (!isAllowed) throw Object.assign(new AppError('forbidden', 'forbidden', 'Not yours.'), { statusCode: 403 })
  }
  const files = {
    add: (id: string, bytes: Buffer) => storeFile(contents, id, bytes),
    read: (id: string, file: string) => readFile(contents, id, file),
    removeUnsent: (id: string, file: string) => removeUnsent(contents, { read: async () => [] }, id, file)
  }
  registerAttachmentRoutes(server, { check }, files, MAX_BYTES)
})
afterEach(() => server.close())

const add = (body: Buffer | string, type = 'application/octet-stream') =>
  server.inject({ method: 'POST', url: '/api/sessions/s/attachments', body, headers: { 'content-type': type } })
const read = (id: string, session = 's') => server.inject(`/api/sessions/${session}/attachments/${id}`)
const remove = (id: string, session = 's') =>
  server.inject({ method: 'DELETE', url: `/api/sessions/${session}/attachments/${id}` })

it('says what a file is by its bytes, and gives an image back as one', async () => {
  const image = pngOf(30, 20)
  const added = await add(image, 'text/html')
  expect(added.statusCode).toBe(201)
  expect(added.json()).toMatchObject({ mediaType: 'image/png', width: 30, height: 20, size: image.length })
  const got = await read(added.json().id)
  expect(got.rawPayload.equals(image)).toBe(true)
  expect(got.headers).toMatchObject({
    'content-type': 'image/png',
    'content-security-policy': "default-src 'none'; sandbox",
    'x-content-type-options': 'nosniff'
  })
})

// Checked: with a type that the client chooses, the browser gets `image/svg+xml`.
it.each([
  ['an SVG with a script', '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', 'image/svg+xml'],
  ['HTML', '<script>alert(1)</script>', 'image/png'],
  ['a PDF', '%PDF-1.7', 'application/pdf']
])('never lets the browser render %s', async (_, body, type) => {
  const got = await read((await add(body, type)).json().id)
  expect(got.headers).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': 'attachment',
    'content-security-policy': "default-src 'none'; sandbox"
  })
})

it('refuses strangers, files of other sessions, and what is too large or empty', async () => {
  const { id } = (await add(pngOf())).json()
  expect((await read(id, 'other')).statusCode).toBeGreaterThanOrEqual(400)
  expect((await read('..%2F..%2Fstore.db')).statusCode).toBeGreaterThanOrEqual(400)
  expect((await add(Buffer.alloc(MAX_BYTES + 1))).statusCode).toBe(413)
  expect((await add('')).statusCode).toBeGreaterThanOrEqual(400)
  isAllowed = false
  expect((await read(id)).statusCode).toBe(403)
  expect((await remove(id)).statusCode).toBe(403)
  expect((await add(pngOf())).statusCode).toBe(403)
})

it('removes a file that was not sent after all, in its own session', async () => {
  const { id } = (await add(pngOf())).json()
  expect((await remove(id, 'other')).statusCode).toBe(204)
  expect((await read(id)).statusCode).toBe(200)
  expect((await remove(id)).statusCode).toBe(204)
  expect((await read(id)).statusCode).toBeGreaterThanOrEqual(400)
  expect((await remove(id)).statusCode).toBe(204)
})
