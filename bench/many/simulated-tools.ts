const VERBS = 'list get search create update delete archive export import share copy move rename count compare'.split(
  ' '
)
const OBJECTS =
  'invoice ticket contact song recipe flight parcel photo note meeting task branch order lesson route'.split(' ')
const PLACES = 'warehouse clinic museum harbour library school garden kitchen office airport theatre farm'.split(' ')
const PER_SERVER = 20

/** Different on every server, as the tools of real servers are. */
export function toolsOf(server: number) {
  const place = `${PLACES[server % PLACES.length]} ${Math.floor(server / PLACES.length)}`
  return Array.from({ length: PER_SERVER }, (_, at) => {
    const verb = VERBS[(server + at) % VERBS.length] ?? ''
    const object = OBJECTS[(server * 7 + at * 3) % OBJECTS.length] ?? ''
    return {
      name: `${verb}_${object}_${at}`,
      description: `${verb} the ${object}s of the ${place}, with a filter and a limit.`,
      inputSchema: { type: 'object', properties: { filter: { type: 'string' }, limit: { type: 'integer' } } },
      annotations: { readOnlyHint: at % 2 === 0 }
    }
  })
}
