import { afterEach, describe, expect, test } from 'vitest'
import { type Connected, connect, TEST_KEY, WIRES, type Wire } from '../../tests/fixtures/model-servers/wires.ts'
import { silentLogger } from '../lib/logger.ts'
import { createModels } from './create-models.ts'

let connected: Connected | undefined
afterEach(() => connected?.server.close())

describe.each(WIRES)('$name', (wire: Wire) => {
  test('makes one small call with a tool, and remembers a success', async () => {
    connected = await connect(wire, { otherwise: () => ({ text: 'ok' }) })
    const { models, server } = connected
    await Promise.all([models.prove(wire.model), models.prove(wire.model)])
    await models.prove(wire.model)
    expect(server.requests).toHaveLength(1)
    const body = JSON.stringify(server.requests[0]?.body)
    expect(body).toContain('noop')
    expect(body).toMatch(/"(?:max_tokens|max_output_tokens|maxOutputTokens)":16\b/)
  })

  test('accepts a thinking model that had no tokens left for text', async () => {
    const stop = { anthropic: 'max_tokens', gemini: 'MAX_TOKENS', 'openai responses': 'max_output_tokens' }[wire.name]
    connected = await connect(wire, { replies: [{ stop: stop ?? 'length' }] })
    await connected.models.prove(wire.model)
  })

  test("a model without tools fails with the provider's message", async () => {
    const body = {
      type: 'error',
      error: { code: 400, type: 'x', status: 'X', message: 'this model does not support tools' }
    }
    connected = await connect(wire, { otherwise: () => ({ status: 400, body }) })
    const proof = connected.models.prove(wire.model)
    await expect(proof).rejects.toMatchObject({ code: 'model_request_rejected' })
    await expect(proof).rejects.toThrow(/does not support tools/)
  })

  test('a model that never answers fails at the deadline, and the caller can abort earlier', async () => {
    connected = await connect(wire, { otherwise: () => ({ hang: 'before-headers' }) }, { proveMs: 300 })
    const left = connected.models.prove(wire.model, AbortSignal.timeout(20))
    await expect(left).rejects.toMatchObject({ kind: 'cancelled' })
    await expect(connected.models.prove(wire.model)).rejects.toMatchObject({ kind: 'timeout', code: 'model_timeout' })
  })
})

test('the demo model needs no proof, and an unknown one gets none', async () => {
  const models = createModels({ logger: silentLogger, openai: { apiKey: TEST_KEY } })
  await models.prove('demo/demo')
  await expect(models.prove('anthropic/x')).rejects.toMatchObject({ code: 'model_unknown' })
})
