import { afterEach, expect, test } from 'vitest'
import { type Connected, collect, connect, stepRequest, WIRES } from '../../tests/fixtures/model-servers/wires.ts'

let connected: Connected | undefined
afterEach(() => connected?.server.close())

const listed = (id: string) => ({
  ...{ type: 'model', id, display_name: id, object: 'model', created: 1, owned_by: 'x' },
  ...{ name: `models/${id}`, displayName: id, supportedGenerationMethods: ['generateContent'] }
})

// Checked: without `#leaveOut`, both models stay in the list.
test.each(WIRES)('$name: a model that its provider lists and does not have leaves the list', async (wire) => {
  const [provider = '', ...rest] = wire.model.split('/')
  const gone = rest.join('/')
  const body = {
    type: 'error',
    error: { type: 'not_found_error', code: 404, status: 'NOT_FOUND', message: 'No such.' }
  }
  connected = await connect(wire, {
    models: [listed(gone), listed(`${gone}-2`)],
    otherwise: (request) => (JSON.stringify(request).includes(`${gone}-2`) ? { text: 'ok' } : { status: 404, body })
  })
  const { models } = connected
  const ids = async () => (await models.catalog()).models.map(({ id }) => id).filter((id) => id.startsWith(provider))
  expect((await ids()).toSorted()).toEqual([wire.model, `${wire.model}-2`])
  expect(await collect(models.step(stepRequest(`${wire.model}-2`, 'hi')))).toMatchObject({ text: 'ok' })
  expect(await collect(models.step(stepRequest(wire.model, 'hi')))).toMatchObject({
    error: { code: 'model_not_found' }
  })
  expect(await ids()).toEqual([`${wire.model}-2`])
})
