import { setImmediate as nextRound } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { StartGate } from './start-gate.ts'

describe('the start gate', () => {
  it('admits up to the limit, in order', async () => {
    const gate = new StartGate(2)
    const leave: (() => void)[] = []
    const entered: number[] = []
    const jobs = Array.from({ length: 5 }, (_, i) =>
      gate.run(() => {
        entered.push(i)
        return new Promise<number>((done) => leave.push(() => done(i)))
      })
    )
    for (const inside of [
      [0, 1],
      [0, 1, 2],
      [0, 1, 2, 3],
      [0, 1, 2, 3, 4]
    ]) {
      await nextRound()
      expect(entered).toEqual(inside)
      leave.shift()?.()
    }
    for (const go of leave) go()
    expect(await Promise.all(jobs)).toEqual([0, 1, 2, 3, 4])
  })

  it('passes the slot on when a job fails, even immediately', async () => {
    const gate = new StartGate(1)
    const failing = gate.run(() => Promise.reject(new Error('no')))
    const throwing = gate.run(() => {
      throw new Error('thrown')
    })
    const fine = gate.run(async () => 'in')
    await expect(failing).rejects.toThrow('no')
    await expect(throwing).rejects.toThrow('thrown')
    expect(await fine).toBe('in')
    expect(await gate.run(async () => 'later')).toBe('later')
  })
})
