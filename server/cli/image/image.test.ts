import { expect, it } from 'vitest'
import { isAppError } from '../../lib/errors.ts'
import { runImage } from './image.ts'

const digest = `registry.example:5000/team/sandbox@sha256:${'a'.repeat(64)}`

function docker(answers: Record<string, string> = {}) {
  const ran: string[][] = []
  const run = async (args: string[]) => {
    ran.push(args)
    return answers[args[0] ?? ''] ?? ''
  }
  return { ran, run }
}

it('builds the image and gives it the name', async () => {
  const { ran, run } = docker()
  const lines = await runImage({ action: 'build', tag: 'registry.example/sandbox:1' }, async () => 'local:tag', run)
  expect(ran).toEqual([['tag', 'local:tag', 'registry.example/sandbox:1']])
  expect(lines.join()).toContain('image push --tag registry.example/sandbox:1')
})

it.each(['', ':1.0'])('pushes the image and prints the digest of that registry (tag "%s")', async (tag) => {
  const image = `registry.example:5000/team/sandbox${tag}`
  const { ran, run } = docker({ image: `other.example/sandbox@sha256:${'b'.repeat(64)}\n${digest}\n` })
  const lines = await runImage({ action: 'push', tag: image }, async () => 'unused', run)
  expect(ran[0]).toEqual(['push', '--quiet', image])
  expect(lines.at(-1)).toBe(`KUBERNETES_IMAGE=${digest}`)
})

it('fails if the registry gives no digest', async () => {
  const { run } = docker()
  const pushed = runImage({ action: 'push', tag: 'registry.example/sandbox' }, async () => '', run)
  await expect(pushed).rejects.toMatchObject({ code: 'image_push_failed' })
})

it.each([
  ['', 'registry.example/sandbox'],
  ['pull', 'registry.example/sandbox'],
  ['push', ''],
  ['push', '--all-tags'],
  ['build', 'registry.example/sand box'],
  ['build', '-x']
])('refuses "%s" of "%s" before anything runs', async (action, tag) => {
  const { ran, run } = docker()
  const error = await runImage({ action, tag }, async () => 'built', run).catch((caught) => caught)
  expect(isAppError(error, 'usage')).toBe(true)
  expect(ran).toEqual([])
})
