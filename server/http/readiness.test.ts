import { expect, it } from 'vitest'
import { recordingLogger } from '../../tests/fixtures/model-servers/wires.ts'
import { Readiness } from './readiness.ts'

// Checked with the defence off: every question is a look → 200 writes.
it('looks at the parts once, however many ask at the same time', async () => {
  let looks = 0
  const readiness = new Readiness({ store: async () => `look ${++looks}` }, recordingLogger([]))
  const answers = await Promise.all(Array.from({ length: 100 }, () => readiness.look()))
  answers.push(...(await Promise.all(Array.from({ length: 100 }, () => readiness.look()))))
  expect(looks).toBe(1)
  expect(answers.every(({ ok, parts }) => ok && parts.store?.detail === 'look 1')).toBe(true)
})
