import { expect, it } from 'vitest'
import { fillParams } from './fill-params.ts'

const text = { type: 'string' }
const schema = (properties: Record<string, unknown>, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required
})
const names = schema({ names: { type: 'array', items: text } })
const query = schema({ query: text })
const gone = { ...text, description: 'The text to wait for to disappear' }
const ABOUT = 'Works on the nodes of the knowledge graph'

// Each was seen failing before.
it.each([
  [
    'a text with its article',
    'echo',
    schema({ message: text }),
    'echo the news of today',
    { message: 'the news of today' }
  ],
  ['several names', 'open_nodes', names, 'open the nodes Alpha, Beta and Gamma', { names: ['Alpha', 'Beta', 'Gamma'] }],
  ['the only name', 'open_nodes', names, 'open the node Alpha', { names: ['Alpha'] }],
  [
    'a name that is a usual word',
    'describe',
    schema({ collection: text }),
    'describe collection users',
    { collection: 'users' }
  ],
  [
    'what is asked for with it',
    'get_note',
    schema({ includeImage: { type: 'boolean' } }, []),
    'get a note with an image',
    { includeImage: true }
  ],
  ['only what is searched for', 'search_nodes', query, 'search for nodes named Bob', { query: 'Bob' }],
  [
    'a search without its place',
    'search_nodes',
    query,
    'find nodes about green tea in the knowledge graph',
    { query: 'green tea' }
  ],
  [
    'a text that disappears',
    'wait_for',
    schema({ text, textGone: gone }, []),
    'wait until "Busy" disappears',
    { textGone: 'Busy' }
  ]
])('finds %s', (_what, name, inputSchema, request, expected) => {
  expect(fillParams({ name, description: ABOUT, inputSchema }, {}, request).params).toEqual(expected)
})

it.each([
  [
    'the place in a text that is not searched for',
    'post',
    schema({ body: text }),
    'post regarding a crash in the graph',
    { body: 'a crash in the graph' }
  ],
  ['no names in a sentence that goes on', 'open_nodes', names, 'open the nodes recently changed', {}],
  [
    'no switch for another thing',
    'get_note',
    schema({ includeImage: { type: 'boolean' } }, []),
    'get a note with a title',
    {}
  ]
])('keeps %s', (_what, name, inputSchema, request, expected) => {
  expect(fillParams({ name, description: ABOUT, inputSchema }, {}, request).params).toEqual(expected)
})
