import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../../tests/support/cpu-ms.ts'
import { frame, STDERR, STDOUT } from '../../workspace/docker-frame.fixture.ts'
import { StreamDemuxer } from './stream-demuxer.ts'

function collect() {
  const out: Buffer[] = []
  const err: Buffer[] = []
  const demuxer = new StreamDemuxer({
    stdout: (payload) => out.push(Buffer.from(payload)),
    stderr: (payload) => err.push(Buffer.from(payload))
  })
  return { demuxer, stdout: () => Buffer.concat(out).toString(), stderr: () => Buffer.concat(err).toString() }
}

describe('StreamDemuxer', () => {
  it('gives the same bytes wherever the stream is cut', () => {
    const frames = fc.array(fc.tuple(fc.constantFrom(0, STDOUT, STDERR), fc.uint8Array({ maxLength: 40 })), {
      maxLength: 30
    })
    fc.assert(
      fc.property(frames, fc.array(fc.nat({ max: 400 }), { maxLength: 40 }), (list, cuts) => {
        const whole = Buffer.concat(list.map(([type, payload]) => frame(type, Buffer.from(payload))))
        const { demuxer, stdout, stderr } = collect()
        let from = 0
        for (const cut of [...cuts.sort((a, b) => a - b), whole.length]) {
          demuxer.push(whole.subarray(from, Math.max(from, cut)))
          from = Math.max(from, Math.min(cut, whole.length))
        }
        const expected = (wanted: number) =>
          Buffer.concat(list.filter(([type]) => type === wanted).map(([, payload]) => payload)).toString()
        expect(stdout()).toBe(expected(STDOUT))
        expect(stderr()).toBe(expected(STDERR))
      })
    )
  })

  it('takes 100,000 small frames in one chunk', () => {
    const { demuxer, stdout } = collect()
    demuxer.push(Buffer.concat(Array.from({ length: 100_000 }, () => frame(STDOUT, 'x'))))
    expect(stdout()).toHaveLength(100_000)
  })

  it('passes payload on before its frame is complete', () => {
    const { demuxer, stdout } = collect()
    demuxer.push(frame(STDOUT, 'abcdef').subarray(0, 11))
    expect(stdout()).toBe('abc')
  })

  it('costs the same per byte for a frame of 16 MB in small chunks', async () => {
    const { demuxer } = collect()
    const whole = frame(STDOUT, Buffer.alloc(16 * 1024 * 1024))
    const spent = await cpuMs(() => {
      for (let at = 0; at < whole.length; at += 1000) demuxer.push(whole.subarray(at, at + 1000))
    })
    expect(spent).toBeLessThan(2000)
  })

  // Checked: without a size limit, there is no error.
  it.each([
    ['an unknown type', Buffer.from([4, 0, 0, 0, 0, 0, 0, 1, 65])],
    ['a padding byte that is not zero', Buffer.from([1, 0, 1, 0, 0, 0, 0, 1, 65])],
    ['an absurd length', Buffer.from([1, 0, 0, 0, 0xff, 0, 0, 0, 65])],
    ['text, as from a TTY', Buffer.from('{"jsonrpc":"2.0"}\n')]
  ])('refuses %s', (_name, bytes) => {
    const { demuxer, stdout } = collect()
    expect(() => demuxer.push(bytes)).toThrow(expect.objectContaining({ code: 'stream_corrupt' }))
    expect(stdout()).toBe('')
  })

  it('takes any bytes for frames or for damage', () => {
    const odd = fc.tuple(fc.nat(5), fc.uint8Array({ maxLength: 9 }))
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 30 }),
      odd.map(([type, payload]) => frame(type, Buffer.from(payload))),
      fc.tuple(fc.nat(5), fc.nat(255)).map(([type, high]) => Buffer.from([type, 0, 0, 0, high, 0, 0, 1]))
    )
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        try {
          const { demuxer } = collect()
          for (const bytes of pieces) demuxer.push(Buffer.from(bytes))
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^(stream_corrupt|engine_stream_error)$/) })
        }
      }),
      { numRuns: 500 }
    )
  })

  it('reports an error of the engine with its text, whole or in pieces', () => {
    for (const step of [1, 5, 1000]) {
      const { demuxer, stdout } = collect()
      const whole = Buffer.concat([frame(STDOUT, 'before'), frame(3, 'out of luck'), frame(STDOUT, 'after')])
      expect(() => {
        for (let at = 0; at < whole.length; at += step) demuxer.push(whole.subarray(at, at + step))
      }).toThrow(
        expect.objectContaining({ code: 'engine_stream_error', message: expect.stringContaining('out of luck') })
      )
      expect(stdout()).toBe('before')
    }
    expect(() => collect().demuxer.push(frame(3, ''))).toThrow(expect.objectContaining({ code: 'engine_stream_error' }))
  })
})
