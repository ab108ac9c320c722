import { expect, it } from 'vitest'
import { filledTemplate, templateVariables } from './uri-template.ts'

const VALUES = {
  var: 'value',
  hello: 'Hello World!',
  path: '/foo/bar',
  x: '1024',
  y: '768',
  empty: '',
  list: 'red/green'
}

// Most of them are examples of RFC 6570.
it.each([
  ['{var}', 'value'],
  ['{hello}', 'Hello%20World!'],
  ['{+hello}', 'Hello%20World!'],
  ['{+path}/here', '/foo/bar/here'],
  ['{path}/here', '%2Ffoo%2Fbar/here'],
  ['X{#var}', 'X#value'],
  ['map?{x,y}', 'map?1024,768'],
  ['X{.x,y}', 'X.1024.768'],
  ['{/var,x}/here', '/value/1024/here'],
  ['{;x,y}', ';x=1024;y=768'],
  ['{?x,y,empty}', '?x=1024&y=768'],
  ['?fixed=yes{&x}', '?fixed=yes&x=1024'],
  ['{var:3}', 'val'],
  ['{/list*}', '/red/green'],
  ['{?missing}', ''],
  ['{+hello}{toString}', 'Hello%20World!'],
  ['plain', 'plain']
])('fills %s', (template, filled) => {
  expect(filledTemplate(template, VALUES)).toBe(filled)
})

it('names each variable once, and says which the address needs', () => {
  expect(templateVariables('a://{id}/{+rest}{?page,id}{/__proto__}')).toEqual([
    { name: 'id', isRequired: true },
    { name: 'rest', isRequired: true },
    { name: 'page', isRequired: false },
    { name: '__proto__', isRequired: false }
  ])
})

it.each(['', 'a://b', 'a://{', 'a://{}', 'a://{b c}', 'a://{b}}', `{${'a,'.repeat(100)}`, '{!x}'])(
  'leaves %j to the person',
  (template) => {
    expect(templateVariables(template)).toBeNull()
  }
)

it('keeps a percent sign that is one already, and never throws on half a character', () => {
  expect(filledTemplate('{+a}', { a: 'x%20y' })).toBe('x%20y')
  expect(filledTemplate('{a}{+a}', { a: '\ud83e' })).toBe('%EF%BF%BD%EF%BF%BD')
})
