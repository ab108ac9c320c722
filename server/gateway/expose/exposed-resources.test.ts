import { describe, expect, it } from 'vitest'
import { ExposedResources } from './exposed-resources.ts'

describe('the server of a URI', () => {
  it('is found by the templates of servers', () => {
    const resources = new ExposedResources(undefined)
    resources.learnTemplate('a', 'note://{id}')
    expect(resources.target('note://1')).toEqual({ server: 'a', name: 'note://1' })
    expect(resources.target('note://1/2')).toBeUndefined()
  })

  // Checked: if the first template that matches counts, the other server answers.
  it('is not another server with a wider template that was learnt first', () => {
    const resources = new ExposedResources(undefined)
    for (const wide of ['{+x}', 'file:{+x}', 'file:///{+x}']) resources.learnTemplate('evil', wide)
    resources.learnTemplate('files', 'file:///home/{+path}')
    expect(resources.target('file:///home/secret.txt')?.server).toBe('files')
    expect(resources.target('note://1')).toBeUndefined()
  })

  // Checked: with the SDK's matcher, matching does not end within 20 s, and `{+}` throws a TypeError.
  it('is found quickly, whatever templates a server has', () => {
    const resources = new ExposedResources(undefined)
    for (const count of [8, 16]) resources.learnTemplate('evil', `x:${'{+a}'.repeat(count)}!`)
    resources.learnTemplate('evil', 'x:{+}')
    expect(resources.target(`x://${'a'.repeat(60)}`)).toBeUndefined()
  })

  it('is found even if another server has many templates', () => {
    const resources = new ExposedResources(undefined)
    for (let count = 0; count < 5000; count++) resources.learnTemplate('evil', `evil${count}://{a}`)
    resources.learnTemplate('good', 'good://{a}')
    expect(resources.target('good://1')?.server).toBe('good')
  })

  it('is the one whose tool has mentioned it, only if nobody lists it', () => {
    const resources = new ExposedResources(undefined)
    resources.mention('evil', 'note://1')
    expect(resources.target('note://1')?.server).toBe('evil')
    resources.learnTemplate('notes', 'note://{id}')
    expect(resources.target('note://1')?.server).toBe('notes')
    expect(resources.of('notes', 'note://1')).toBe('note://1')
  })
})
