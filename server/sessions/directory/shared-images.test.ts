import { expect, it } from 'vitest'
import type { SessionEvent } from '../../../contract/events.ts'
import { applyEvent, emptyTranscript } from '../../../contract/transcript.ts'
import { transcriptMarkdown } from '../../../contract/transcript-markdown.ts'
import { pngOf } from '../../../tests/support/tiny-png.ts'
import { FakeContentStore } from '../../storage/fake-content-store.ts'
import { readFile, storeFile } from '../attachments/stored-file.ts'
import { sharedImages } from './shared-images.ts'
import { transcriptHtml } from './transcript-html.ts'

const NAME = '"><script>alert(1)</script>.png'

// Checked: if the bytes do not decide, a script is in the file as a `data:` address.
it('a shared file contains the images of messages and results, and nothing else of their files', async () => {
  const contents = new FakeContentStore()
  const image = await storeFile(contents, 's', pngOf(30, 20))
  const shot = await storeFile(contents, 's', pngOf(40, 20))
  const html = await storeFile(contents, 's', Buffer.from('<script>alert(1)</script>'))
  const lie = { ...html, mediaType: 'image/png' }
  const transcript = emptyTranscript()
  const call = { callId: 'c', turnId: 't1', server: 's', name: 'shoot', args: {} }
  for (const [type, data] of [
    [
      'user:message',
      {
        turnId: 't1',
        text: '',
        attachments: [
          { ...image, name: NAME },
          { ...lie, name: 'lie.png' }
        ]
      }
    ],
    ['tool:approval_required', call],
    ['tool:result', { callId: 'c', isError: false, content: [{ type: 'image', mimeType: 'image/png', file: shot }] }]
  ] as const)
    applyEvent(transcript, { type, data, seq: transcript.seq + 1, at: 1 } as SessionEvent)
  const images = await sharedImages(transcript, (id) => readFile(contents, 's', id))
  const shared = await transcriptHtml('Title', transcript, images)
  expect(shared.match(/<img src="data:image\/png;base64,/g)).toHaveLength(2)
  expect(shared).not.toMatch(/<script|data:text/)
  expect(shared).toContain('lie.png')
  expect(shared).toContain('img-src data:')
  const markdown = transcriptMarkdown('Title', transcript)
  expect(markdown).toContain('Attached: "><script>alert(1)</script>.png (image/png, 30×20')
  expect(markdown).toContain('[image: image/png, 40×20')
})
