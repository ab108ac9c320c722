import { describe, expect, it } from 'vitest'
import { Breaker } from './breaker.ts'

function breakerAt() {
  let now = 1000
  const breaker = new Breaker('s', { now: () => now })
  const failTimes = (times: number) => {
    for (let i = 0; i < times; i++) breaker.failed(new Error(`reason ${i}`))
  }
  const wait = (ms: number) => {
    now += ms
  }
  return { breaker, failTimes, wait }
}

describe('the breaker', () => {
  it('opens with the third failure in a row, and says why and for how long', () => {
    const { breaker, failTimes } = breakerAt()
    failTimes(2)
    expect(breaker.state).toBe('closed')
    breaker.check()
    failTimes(1)
    expect(breaker.state).toBe('open')
    expect(() => breaker.check()).toThrow(
      /^The server "s" failed 3 times in a row and will be retried in [12] s\. reason 0$/
    )
    // Nothing was sent: the call may go elsewhere.
    expect(() => breaker.check()).toThrow(
      expect.objectContaining({ code: 'server_resting', details: { sent: false, reason: 'reason 0' } })
    )
  })

  it('allows one trial start after a while, which decides', () => {
    const { breaker, failTimes, wait } = breakerAt()
    failTimes(3)
    wait(2000)
    expect(breaker.state).toBe('half-open')
    breaker.check()
    failTimes(1)
    expect(breaker.state).toBe('open')
    wait(4000)
    expect(breaker.state).toBe('half-open')
    breaker.succeeded()
    expect(breaker.state).toBe('closed')
    failTimes(2)
    expect(breaker.state).toBe('closed')
  })

  it('stays open longer with each failure, up to five minutes', () => {
    const { breaker, failTimes, wait } = breakerAt()
    failTimes(50)
    wait(149_000)
    expect(breaker.state).toBe('open')
    wait(151_001)
    expect(breaker.state).toBe('half-open')
  })
})
