import { describe, expect, it } from 'vitest'
import { sniffMedia } from './sniff-media.ts'

function png(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(33)
  bytes.write('\x89PNG\r\n\x1a\n', 'latin1')
  bytes.write('IHDR', 12, 'latin1')
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}
function webp(format: string, fill: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.alloc(40)
  bytes.write(`RIFF....WEBP${format}`, 'latin1')
  fill(bytes)
  return bytes
}
const jpeg = Buffer.from('ffd8ffe000040000ffffc4000400 00ffc2000b080140028003'.replace(' ', ''), 'hex')

describe('what a file is', () => {
  it('comes from its first bytes, with the size of an image', () => {
    expect(sniffMedia(png(640, 320))).toEqual({ mediaType: 'image/png', width: 640, height: 320 })
    expect(sniffMedia(Buffer.from('GIF89a\x80\x02\x40\x01', 'latin1'))).toEqual({
      mediaType: 'image/gif',
      width: 640,
      height: 320
    })
    expect(sniffMedia(jpeg)).toEqual({ mediaType: 'image/jpeg', width: 640, height: 320 })
    const lossy = webp('VP8 ', (bytes) => {
      bytes.writeUInt16LE(640, 26)
      bytes.writeUInt16LE(320, 28)
    })
    const lossless = webp('VP8L', (bytes) => bytes.writeUInt32LE(639 | (319 << 14), 21))
    const extended = webp('VP8X', (bytes) => {
      bytes.writeUIntLE(639, 24, 3)
      bytes.writeUIntLE(319, 27, 3)
    })
    for (const image of [lossy, lossless, extended])
      expect(sniffMedia(image)).toEqual({ mediaType: 'image/webp', width: 640, height: 320 })
    expect(sniffMedia(Buffer.from('%PDF-1.7\n'))).toEqual({ mediaType: 'application/pdf' })
  })

  // Checked: without the limits, a decompression bomb is accepted as an image.
  it.each([
    ['SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')],
    ['HTML', Buffer.from('<html>')],
    ['nothing', Buffer.alloc(0)],
    ['a header without a size', png(1, 1).subarray(0, 20)],
    ['no pixels', png(0, 5)],
    ['a decompression bomb', png(60_000, 60_000)],
    ['many pixels on short sides', png(15_000, 15_000)],
    ['a JPEG of padding', Buffer.concat([Buffer.from('ffd8', 'hex'), Buffer.alloc(100_000, 0xff)])],
    ['a JPEG that points into itself', Buffer.from('ffd8ffe00000ffe00000', 'hex')]
  ])('is unknown for %s', (_, bytes) => expect(sniffMedia(bytes)).toBeUndefined())
})
