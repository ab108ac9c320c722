/** A person at a keyboard, and a card as the page draws it: what they type, at which pace, must never be taken for an approval. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DecisionKeys, PAUSE_MS, TYPING_MS, TypingClock } from './decision-keys.ts'

type Place = 'card' | 'approve' | 'reason' | 'edit'
interface Stroke {
  key: string
  /** Since the stroke before. */
  after: number
}

/** Where the keyboard is after all strokes, and whether Enter or Space has pressed Approve or sent the reason. */
function typeAll(strokes: Stroke[], from: Place = 'card') {
  const typing = new TypingClock()
  const keys = new DecisionKeys(typing, ['a', 'r', 'e'], 'a')
  let [place, now, reason, approved, rejected] = [from, 1_000_000, '', false, false]
  keys.focus(now, false)
  for (const { key, after } of strokes) {
    now += after
    const press = { key, isChord: false, isRepeat: false, isComposing: false }
    if (approved || rejected) break
    if (place === 'reason' || place === 'edit') {
      typing.note(press, now)
      rejected = place === 'reason' && key === 'Enter'
      if (key !== 'Enter') reason += key
      continue
    }
    const effect = keys.press(press, now)
    if (effect.type === 'pass') approved = place === 'approve' && (key === 'Enter' || key === ' ')
    if (effect.type === 'release') {
      place = 'card'
      keys.focus(now, false)
    }
    if (effect.type === 'act')
      place = ({ a: 'approve', r: 'reason', e: 'edit' } as const)[effect.letter as 'a' | 'r' | 'e']
    if (effect.type === 'act' && place === 'approve') keys.focus(now, keys.isChosen)
  }
  return { place, approved, rejected, reason }
}
const typed = (text: string, after: number) => [...text].map((key) => ({ key: key === '\n' ? 'Enter' : key, after }))
const key = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...'arel no', 'Enter', 'A', 'R') },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 1 }) }
)
const start = fc.constantFrom<Place>('card', 'approve')

it('approves with A, a moment, and Enter; rejects with R and a reason that is typed at once', () => {
  expect(
    typeAll([
      { key: 'a', after: 10 },
      { key: 'Enter', after: PAUSE_MS }
    ]).approved
  ).toBe(true)
  expect(typeAll(typed('rno way, wrong file\n', 80))).toMatchObject({ rejected: true, reason: 'no way, wrong file' })
})

it.each([
  'no way, wrong file\n',
  'hold on\n',
  'a\n',
  'all of it\n',
  'mega\n',
  ' a \n',
  'a file\n',
  'area\n',
  'wait a\n'
])('takes %j, typed in one go, for no approval', (text) => {
  for (const pace of [0, 40, 150, PAUSE_MS - 1]) expect(typeAll(typed(text, pace)).approved).toBe(false)
})

it('takes no burst of keys for an approval, whatever they are and wherever on the card the keyboard is', () => {
  const strokes = fc.array(fc.record({ key, after: fc.nat(PAUSE_MS - 1) }), { maxLength: 40 })
  fc.assert(
    fc.property(start, strokes, (from, all) => {
      expect(typeAll(all, from).approved).toBe(false)
    }),
    { numRuns: 3000 }
  )
})

it('takes no text for an approval, however slowly it is typed, unless it is the letter A alone', () => {
  const text = fc
    .array(fc.constantFrom(...'arelwhy no'), { minLength: 1, maxLength: 12 })
    .filter((all) => all.join('') !== 'a')
  fc.assert(
    fc.property(text, fc.array(fc.nat(TYPING_MS - 1), { minLength: 13, maxLength: 13 }), (all, gaps) => {
      const strokes = [...all, 'Enter'].map((each, at) => ({ key: each, after: gaps[at] ?? 0 }))
      expect(typeAll(strokes).approved).toBe(false)
    }),
    { numRuns: 3000 }
  )
})

it('takes a text that was begun in a field for typing when the card gets the keyboard meanwhile', () => {
  const typing = new TypingClock()
  const keys = new DecisionKeys(typing, ['a', 'r', 'e'], 'a')
  const press = { key: 'a', isChord: false, isRepeat: false, isComposing: false }
  typing.note({ ...press, key: 'n' }, 0)
  keys.focus(1, false)
  expect(keys.press({ ...press, key: 'r' }, 100).type).toBe('swallow')
  // Alt+P or a click says that what follows is for the card.
  typing.clear()
  expect(keys.press({ ...press, key: 'r' }, 200)).toEqual({ type: 'act', letter: 'r' })
})

it('takes no held or composed key, leaves shortcuts and movement alone, and goes back with Escape', () => {
  const keys = new DecisionKeys(new TypingClock(), ['a', 'r'], 'a')
  const press = { key: 'a', isChord: false, isRepeat: false, isComposing: false }
  expect(keys.press({ ...press, isRepeat: true }, 0).type).toBe('swallow')
  expect(keys.press({ ...press, isComposing: true }, 0).type).toBe('swallow')
  for (const other of [{ key: 'r', isChord: true }, { key: 'Tab' }, { key: 'ArrowDown' }, { key: 'Escape' }])
    expect(keys.press({ ...press, ...other }, 5000).type).toBe('pass')
  expect(keys.press(press, 10_000).type).toBe('act')
  expect(keys.press({ ...press, key: 'Escape' }, 10_100).type).toBe('release')
  expect(keys.press({ ...press, key: 'Enter', isRepeat: true }, 20_000).type).toBe('swallow')
  expect(keys.pressInForm({ ...press, key: 'Enter' }, 20_000).type).toBe('pass')
  // Letters on a button of the form: the Enter after them ends a text.
  expect(keys.pressInForm({ ...press, key: 'x' }, 21_000).type).toBe('pass')
  expect(keys.pressInForm({ ...press, key: 'Enter' }, 22_900).type).toBe('swallow')
  expect(keys.pressInForm({ ...press, key: 'Enter' }, 23_100).type).toBe('pass')
})
