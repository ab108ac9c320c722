import { expect, it } from 'vitest'
import { emptyInput } from './form-values.ts'
import { toolArguments, toolParameters } from './tool-form.ts'

const parameters = toolParameters({
  required: ['title'],
  properties: {
    title: { type: 'string' },
    urgent: { type: 'boolean' },
    loud: { type: 'boolean', default: true },
    tags: {}
  }
})
const untouched = { ...emptyInput(parameters.flatMap(({ field }) => field ?? [])), tags: '' }

// Seen before: the tool was called without the parameter that it requires, and with "false" for a box that nobody had ticked.
it('asks for what is required and missing, and sends nothing that nobody entered', () => {
  expect(toolArguments(parameters, untouched)).toBe('“title” is required.')
  expect(toolArguments(parameters, { ...untouched, title: 'x' })).toEqual({ title: 'x' })
  expect(toolArguments(parameters, { ...untouched, title: 'x', urgent: true, loud: false, tags: '[1]' })).toEqual({
    ...{ title: 'x', urgent: true, loud: false, tags: [1] }
  })
  expect(toolArguments(parameters, { ...untouched, title: 'x', tags: '[1' })).toMatch(/“tags” is not valid JSON/)
})
