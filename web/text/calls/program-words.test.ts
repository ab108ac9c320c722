import { expect, it } from 'vitest'
import { programOutput } from './program-words.ts'

// Seen before: a failed program was one line of JSON, cut off at the edge of the card.
it('shows the error, the value and what was printed, and leaves everything else as it is', () => {
  const failed = { error: { code: 'code_failed', message: 'Error: on purpose', line: 3 }, calls: 1, logs: 'a\nb' }
  expect(programOutput(JSON.stringify(failed))).toBe('Line 3: Error: on purpose\n\nPrinted:\na\nb')
  expect(programOutput('{"value":"all read","calls":3}')).toBe('all read')
  expect(programOutput('{"value":{"a":[1]},"calls":0,"cut":"Read on."}')).toBe('{\n  "a": [\n    1\n  ]\n}\n\nRead on.')
  for (const text of ['', 'null', '[1]', '"x"', '{"calls":1}', '{"error":"x"}', 'not JSON', '{"value":1']) {
    expect(programOutput(text)).toBe(text)
  }
})
