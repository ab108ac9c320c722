import { expect, it } from 'vitest'
import { LiveOutput } from './live-output.ts'

const MIB = 1024 * 1024

async function sentOf(pieces: string[]): Promise<string> {
  const sent: string[] = []
  const live = new LiveOutput(async (message) => {
    sent.push(JSON.parse(message).text)
  })
  for (const piece of pieces) {
    live.add('stdout', Buffer.from(piece))
    await new Promise(setImmediate)
  }
  live.end()
  await expect.poll(() => sent.join('').length).toBeGreaterThan(MIB)
  return sent.join('')
}

it('says once where the live output ends', async () => {
  const piece = 'x'.repeat(32 * 1024)
  const text = await sentOf(Array.from({ length: 40 }, () => piece))
  expect(text.slice(0, MIB)).toBe('x'.repeat(MIB))
  expect(text.slice(MIB)).toMatch(/^\n\[… the live output ends here; .* …\]\n$/)
})

it('says how much a slow reader missed', async () => {
  const reader = Promise.withResolvers<void>()
  const sent: string[] = []
  const live = new LiveOutput(async (message) => {
    sent.push(JSON.parse(message).text)
    await reader.promise
  })
  for (let line = 0; line < 5; line++) live.add('stdout', Buffer.from('y'.repeat(40 * 1024)))
  reader.resolve()
  await expect.poll(() => sent.join('').length).toBe(3 * 40 * 1024)
  live.add('stdout', Buffer.from('the end'))
  live.end()
  await expect.poll(() => sent.join('').slice(-80)).toMatch(/yy\n\[… 81920 characters are not shown here …\]\nthe end$/)
})
