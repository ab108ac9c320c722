import { describe, expect, it } from 'vitest'
import type { CallEntry } from '../../../contract/transcript.ts'
import { callSummary, inOrder, splitEnding, workspacePath } from './call-summary.ts'
import { decisionWords } from './decision-words.ts'
import { resultParts } from './result-parts.ts'
import { isOwnSentence } from './result-words.ts'

function call(name: string, args: Record<string, unknown>, server = 'workspace'): CallEntry {
  return {
    callId: 'c',
    turnId: 't',
    server,
    name,
    args,
    definition: 'd',
    hash: 'h',
    queuePosition: 1,
    totalInQueue: 1,
    requestedAt: 0
  }
}

describe('callSummary', () => {
  it('says in one line what a call does', () => {
    expect(callSummary(call('write_file', { path: 'a.txt', content: 'é' }))).toBe('Write 2 B to a.txt')
    const bytes = { path: 'a.bin', content: 'aGVs\nbG8=', encoding: 'base64' }
    expect(callSummary(call('write_file', bytes))).toBe('Write 5 B to a.bin')
    expect(callSummary(call('write_file', { ...bytes, append: true }))).toBe('Add 5 B to the end of a.bin')
    expect(callSummary(call('execute_command', { command: 'ls\nrm -rf .' }))).toBe('Run ls…')
    expect(callSummary(call('list_files', {}))).toBe('List the files in the workspace')
    expect(callSummary(call('search', { query: 'x', limit: 3 }, 'github'))).toBe('search: query “x”, limit 3')
    const edits = Array(3).fill({ oldText: 'a', newText: 'b' })
    expect(callSummary(call('edit_file', { path: 'src/app.ts', edits }, 'files'))).toBe(
      'edit_file: src/app.ts, 3 edits'
    )
    expect(callSummary(call('write_file', { path: 'a', content: 'é' }, 'files'))).toBe('write_file: a, 2 B')
    const files = ['a', 'b'].map((path) => ({ path, content: '' }))
    expect(callSummary(call('push_files', { files, branch: 'x' }, 'github'))).toBe('push_files: 2 files')
    expect(callSummary(call('ping', {}, 'x'))).toBe('ping')
    const many = { a: [1], b: { c: 1 }, c: null, d: 'x\ny', e: 5 }
    expect(callSummary(call('f', many, 'x'))).toBe('f: a (1 item), b (1 field), c null, d “x…”, 1 more')
  })

  it('does not take another server’s tool for the sandbox’s own', () => {
    expect(callSummary(call('read_file', { path: 'a' }, 'evil'))).toBe('read_file: path “a”')
  })

  it('tells of what ran, when the person edited it', () => {
    const edited = {
      ...call('read_file', { path: 'a' }),
      decision: { approved: true, by: 'human', at: 1, editedArgs: { path: 'b' } } as const
    }
    expect(callSummary(edited)).toBe('Read b')
  })
})

describe('splitEnding', () => {
  it('does not believe the output of the command', () => {
    const text = 'out\n[exit code 3, 12 ms]'
    expect(splitEnding(text)).toEqual({ output: text, ending: null })
  })

  it('removes the last line only, where the result says how the command ended', () => {
    const ending = { exitCode: 3, signal: null, timedOut: false, durationMs: 12 }
    const shown = { text: 'exit code 3', isGood: false, ms: 12 }
    expect(splitEnding('out\n[exit code 3, 12 ms]', ending)).toEqual({ output: 'out', ending: shown })
    expect(splitEnding('[exit code 0, 1 ms]\nmore', ending)).toEqual({
      output: '[exit code 0, 1 ms]\nmore',
      ending: shown
    })
    const killed = 'out\n[killed: it ran longer than 1 s, 1003 ms]'
    expect(splitEnding(killed, ending).output).toBe('out')
    expect(splitEnding('', { ...ending, exitCode: null, signal: 'SIGKILL' }).ending?.text).toBe('killed by SIGKILL')
    expect(splitEnding('', { ...ending, exitCode: null, timedOut: true }).ending?.text).toBe('killed at its time limit')
  })
})

describe('workspacePath', () => {
  it.each([
    ['a.txt', 'a.txt'],
    ['./a//b.txt', 'a/b.txt'],
    ['/workspace/a.txt', 'a.txt'],
    ['x/../a', 'a'],
    ['/workspace', null],
    [3, null]
  ])('%s', (given, path) => expect(workspacePath(given)).toBe(path))
})

describe('resultParts', () => {
  it('shows pictures of known kinds only, and leaves nothing out', () => {
    const image = { type: 'image', mimeType: 'image/png', data: 'aGk=' }
    expect(resultParts([{ type: 'text', text: 'a' }, image])).toEqual({
      text: 'a',
      images: ['data:image/png;base64,aGk='],
      files: []
    })
    expect(resultParts([{ ...image, mimeType: 'image/svg+xml' }]).images).toEqual([])
    expect(resultParts([{ ...image, data: '"><script>' }]).images).toEqual([])
    expect(resultParts([{ type: 'resource', uri: 'x' }]).text).toContain('"uri": "x"')
  })
})

it('says why a call was not run', () => {
  const cancelled = { approved: false, by: 'cancel', at: 0 } as const
  const words = (decision: CallEntry['decision']) => decisionWords({ ...call('read_file', {}), decision })
  expect(words(cancelled)).toBe('Not run: you stopped the turn')
  expect(words({ ...cancelled, reason: 'The model was switched.' })).toBe('Not run: cancelled before you decided')
})

describe('inOrder', () => {
  const output = 'one\nthree\n[stderr]\ntwo\nfour'
  it('puts errors where they happened', () => {
    expect(inOrder(output, [4, 4, 6, 5]).map(({ stream, text }) => [stream, text])).toEqual([
      ['stdout', 'one\n'],
      ['stderr', 'two\n'],
      ['stdout', 'three\n'],
      ['stderr', 'four\n']
    ])
    expect(inOrder('[stderr]\nx', [0, 1])).toEqual([{ stream: 'stderr', text: 'x' }])
  })

  it.each([[undefined], [[]], [[3, 4]], [[10, 4]], [[100, 1]], [[10, 400]]])(
    'leaves the output as it is for %j',
    (order) => {
      expect(inOrder(output, order)).toEqual([{ stream: 'stdout', text: output }])
    }
  )
})

it('shows what an interrupted call had written as output, and our sentence alone as a sentence', () => {
  const stopped = (...texts: string[]): CallEntry => ({
    ...call('execute_command', { command: 'x' }),
    startedAt: 1,
    result: { isError: true, interruptedBy: 'person', at: 2, content: texts.map((text) => ({ type: 'text', text })) }
  })
  expect(isOwnSentence(stopped('The turn was stopped.'))).toBe(true)
  expect(isOwnSentence(stopped('tick 1\n', 'The turn was stopped.'))).toBe(false)
})
