import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { type FakeRegistry, startRegistry } from '../../../tests/fixtures/mcp-registry.ts'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { fetchListing, fetchListingJson } from './fetch-listing.ts'
import { readListing, searchListing, writeListing } from './listing.ts'

const opened: FakeRegistry[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((registry) => registry.close()))
})
async function registry(servers: Record<string, unknown>[], options = {}): Promise<FakeRegistry> {
  const started = await startRegistry(servers, options)
  opened.push(started)
  return started
}
const server = (name: string, description: string, more = {}) => ({
  name,
  description,
  version: '1.0.0',
  packages: [{ registryType: 'npm', identifier: 'x', version: '1.0.0', transport: { type: 'stdio' } }],
  ...more
})

it('fetches all pages, keeps them in a private file, and finds them there without a network', async () => {
  const { url, asked } = await registry([
    server('io.github.a/weather', 'Forecasts'),
    server('io.github.b/files', 'Reads files, and the weather report in them'),
    server('io.github.c/old-weather', 'Forecasts', { status: 'deprecated' }),
    server('io.github.d/gone', 'Weather', { status: 'deleted' }),
    server('io.github.e/weather-evil', 'Weather', { packages: [{ registryType: 'npm', identifier: `\${secret:A}` }] })
  ])
  const pages: number[] = []
  const { leftOut, ...listing } = await fetchListing(url, (servers) => pages.push(servers))
  expect(asked).toEqual([
    '/v0.1/servers?version=latest&limit=100',
    '/v0.1/servers?version=latest&limit=100&cursor=2',
    '/v0.1/servers?version=latest&limit=100&cursor=4'
  ])
  expect({ pages, leftOut, source: listing.source }).toEqual({ pages: [2, 3, 3], leftOut: 1, source: url })
  const file = join(temporaryFolder(), 'data', 'listing.jsonl')
  expect(readListing(file)).toBeUndefined()
  await writeListing(file, listing)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const stored = readListing(file)
  expect(stored).toEqual(listing)
  const found = (query: string) => searchListing(stored ?? listing, query).found.map(({ name }) => name)
  expect(found('Weather')).toEqual(['io.github.a/weather', 'io.github.b/files', 'io.github.c/old-weather'])
  expect(found('weather files')).toEqual(['io.github.b/files'])
  expect(found('nothing')).toEqual([])
})

it('ends with a registry whose list does not', async () => {
  const { url } = await registry([server('a.b/c', 'x')], { endless: true })
  await expect(fetchListing(url, () => {})).rejects.toMatchObject({
    code: 'listing_unreachable',
    message: expect.stringContaining('does not end')
  })
})

it.each(['http://example.test', 'file:///etc/passwd', 'ftp://a', 'nonsense'])('does not fetch from %s', async (url) => {
  await expect(fetchListing(url, () => {})).rejects.toMatchObject({ code: 'usage' })
})

it('says why an address can not be used', async () => {
  const { url } = await registry([server('a.b/c', 'x'.repeat(5000))])
  await expect(fetchListingJson(`${url}/nothing`)).rejects.toThrow('it answers with status 404')
  await expect(fetchListingJson(`${url}/v0.1/servers`, 1000)).rejects.toThrow('larger than 1000 bytes')
  await expect(fetchListingJson('http://127.0.0.1:1/')).rejects.toMatchObject({ code: 'listing_unreachable' })
})

it('says what to do about a file that was damaged', () => {
  const file = join(temporaryFolder(), 'listing.jsonl')
  writeFileSync(file, '{"source":')
  expect(() => readListing(file)).toThrow('servers fetch')
  expect(readFileSync(file, 'utf8')).toBe('{"source":')
})
