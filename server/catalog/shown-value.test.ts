import { expect, it } from 'vitest'
import { terminalText } from '../../contract/hidden-characters.ts'
import { describeTarget } from './describe-target.ts'
import { readRegistry } from './registry.ts'
import { shownValue } from './shown-value.ts'

// Checked: if a value is masked because of its name, or of a part that looks like a password, the person accepts what they did not see.
it.each([
  ['NODE_OPTIONS', "--import=data:text/javascript,process._rawDebug('x');pwd=1"],
  ['NODE_OPTIONS', `--title=${'a'.repeat(600)} --require=/tmp/other.js`],
  ['HTTPS_PROXY', 'http://u:p1234@elsewhere.example:8080'],
  ['AUTH_HELPER', '/tmp/other.sh'],
  ['AUTH_URL', 'https://elsewhere.example/collect'],
  ['TOKEN_ENDPOINT', 'elsewhere.example'],
  ['SESSION_HOST', 'elsewhere.example:8080']
])('shows the whole value of %s, which decides what is run or where data goes', (name, value) => {
  expect(shownValue(name, value).value).toBe(value)
})

it.each([
  ['GITHUB_TOKEN', 'ghp_abcdefgh', null],
  ['Authorization', 'Bearer abcdefgh', null],
  ['TOKEN_ENDPOINT', 'ghp_abcdefgh', null],
  ['DATABASE_URL', 'postgres://me:pass-word@db.example/x', 'postgres://me:•••@db.example/x'],
  ['PASSWORD_HINT', 'two words', 'two words']
])('masks in %s only what has the form of a secret', (name, value, shown) => {
  expect(shownValue(name, value)).toEqual({ name, placeholder: null, value: shown, looksSecret: true })
})

it('says how much of a very long value is not shown', () => {
  expect(shownValue('NOTE', 'a'.repeat(5000)).value).toMatch(/^a{4000}… \(1000 more characters\)$/)
})

// Checked: if control characters stay as they are, the terminal's clean-up removes what is between them.
it('shows a command and an address in which control characters would hide a part', () => {
  const script = 'echo hi \u009d; touch /tmp/x #\u009c ; \u009b; rm y'
  const { servers } = readRegistry(
    JSON.stringify({
      mcpServers: {
        a: { command: 'sh', args: ['-c', script] },
        b: { url: 'https://good.example/\u009d@other\u009c/mcp' }
      }
    }),
    'mcp.json'
  )
  const shown = [...servers.values()].map((entry) => terminalText(describeTarget(entry)))
  expect(shown[0]).toBe('sh -c "echo hi \\u009d; touch /tmp/x #\\u009c ; \\u009b; rm y"')
  expect(shown[1]).toContain('@other')
})
