/** Texts that take time with the square of their length would stop the whole instance. Each of these took seconds. */
import { expect, it } from 'vitest'
import { quotedLine } from '../../contract/hidden-characters.ts'
import { causeLine } from '../../server/connections/wire/cause-line.ts'
import { doubtAboutReading } from '../../server/gateway/execute/doubtful-sentence.ts'
import { normalForm } from '../../server/lib/normal-form.ts'
import { readPlan } from '../../server/models/demo/demo-requests.ts'
import { announce } from '../../server/models/demo/demo-words.ts'
import { words } from '../../server/routing/words/words.ts'
import { importedEvents } from '../../server/sessions/directory/imported-events.ts'
import { cleanTitle } from '../../server/sessions/directory/session-titles.ts'
import { cpuMs } from '../support/cpu-ms.ts'

const LONG = 100_000
const marks = '\u0301\u0316'.repeat(LONG / 2)
const spaces = ' '.repeat(LONG)
const tool = { name: 'list_things', description: 'Lists things.' }
const imported = (title: string) => ({
  summary: { title },
  conversation: { entries: [{ kind: 'user', text: 'x' }], calls: {} }
})
const repeated = (times: number, job: () => unknown) => () => {
  for (let at = 0; at < times; at += 1) job()
}

// Checked: with the earlier patterns, each of these takes between one second and several minutes.
it.each<[string, () => unknown]>([
  ['searching a text of combining signs', () => normalForm(`a${marks}`, 'NFKC')],
  ['splitting the description of a tool into words', repeated(100, () => words(`a${marks}`, 'prose'))],
  ['the title of an imported conversation', () => importedEvents(imported(`x${'"'.repeat(LONG)}x`))],
  ['a title that a model gives', () => cleanTitle(`x${'*'.repeat(LONG)}x`)],
  ['a request to the demo model', () => readPlan(`write ${spaces}x`)],
  ['many requests to the demo model', () => readPlan('ls\n'.repeat(LONG / 3))],
  ['what the demo model says of a command', () => announce([call('execute_command', { command: `${spaces}x` })])],
  ['the error of a server, on the line that shows it', () => quotedLine(`x${spaces}x`)],
  ['the reason why a server ended', () => causeLine(`Error${'a.'.repeat(LONG)}\n${'^'.repeat(LONG)} ${spaces}`)],
  ['a sentence to the gateway', repeated(30, () => doubtAboutReading(`show ${','.repeat(3990)}`, tool))]
])('costs little time: %s', async (_what, job) => {
  expect(await cpuMs(job)).toBeLessThan(600)
})

it('changes no normal form but that of endless runs of signs', () => {
  const plain = 'ﬁne Café cafe\u0301 \uff76\uff9e Ạ\u0301\u0316\u0301 नमस्ते'
  expect(normalForm(plain, 'NFKC')).toBe(plain.normalize('NFKC'))
  expect(normalForm(plain, 'NFKD')).toBe(plain.normalize('NFKD'))
})

function call(name: string, args: object) {
  return { id: 'c1', callId: 'c1', name, args: JSON.stringify(args) } as never
}
