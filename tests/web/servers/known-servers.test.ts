import { expect, it } from 'vitest'
import { planServers } from '../../../server/catalog/import/plan-servers.ts'
import { KNOWN_SERVERS, knownEntry, missingNeeds } from '../../../web/text/known-servers.ts'

it('has about fifteen servers, each a valid entry without a secret in its command line or address', () => {
  expect(KNOWN_SERVERS.length).toBeGreaterThanOrEqual(15)
  expect(new Set(KNOWN_SERVERS.map(({ name }) => name)).size).toBe(KNOWN_SERVERS.length)
  for (const server of KNOWN_SERVERS) {
    const given = Object.fromEntries(server.needs.map(({ id }) => [id, `given-${id}-1234567890`]))
    for (const values of [given, {}]) {
      const plan = planServers(
        JSON.stringify({ mcpServers: { [server.name]: knownEntry(server, values) } }),
        () => false
      )
      expect(plan.problems).toEqual([])
      expect(plan.servers[0]?.warnings.join()).not.toMatch(/command line|address/)
    }
    for (const { id, isSecret, isOptional } of server.needs) {
      const text = JSON.stringify(knownEntry(server, {}))
      expect(text.includes(`\${secret:${id}}`)).toBe(isSecret === true && !isOptional)
    }
  }
})

it('puts what was entered in its place, and says what is missing', () => {
  const of = (name: string) => KNOWN_SERVERS.find((server) => server.name === name) ?? expect.fail(name)
  expect(missingNeeds(of('filesystem'), { folder: ' ' })).toEqual(['Folder that it may use'])
  expect(missingNeeds(of('notion'), {})).toEqual([])
  expect(knownEntry(of('filesystem'), { folder: '/srv/my notes' })).toMatchObject({
    command: 'npx',
    args: ['-y', '@modelcontextprotocol/server-filesystem', '/srv/my notes']
  })
  expect(knownEntry(of('github'), { GITHUB_TOKEN: ' ghp_x ' })).toMatchObject({
    headers: { Authorization: 'Bearer ghp_x' }
  })
  expect(knownEntry(of('context7'), {})).not.toHaveProperty('env')
})
