import { afterEach, beforeEach, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import { openEmbeddedStore } from '../../storage/embedded/open-embedded-store.ts'
import type { Store } from '../../storage/store.ts'
import { OwnerAccess } from './owner-access.ts'
import { SessionAccess, secret } from './session-access.ts'

let dataDir: string
let store: Store
let access: SessionAccess
let owners: OwnerAccess
let revoked: string[]
beforeEach(async () => {
  dataDir = temporaryFolder()
  store = await openEmbeddedStore({ dataDir, logger: silentLogger })
  revoked = []
  access = new SessionAccess(
    store.keyValues,
    { MAX_OWNER_SESSIONS: 9, MAX_ADDRESS_SESSIONS: 1000 },
    { revoked: (sessionId) => revoked.push(sessionId) }
  )
  owners = new OwnerAccess(store.keyValues, access)
})
afterEach(async () => {
  await store.close()
  discard(dataDir)
})

const host = 'localhost:3000'
const withOld = (cookie: string) => ({ host, cookie: `mcpo_owner=${cookie}` })
const withNew = (cookie: string) => ({ host, cookie: `mcpo_owner_3000=${cookie}` })

it('an owner from before there were proofs keeps the sessions, bound to the first proof', async () => {
  await access.open('mine', { owner: 'old-cookie' })
  const proof = secret()
  const entered = await owners.enter(withOld('old-cookie'), proof)
  expect(entered).toEqual({ cookie: 'old-cookie', isKnown: true })
  const owner = await owners.ownerOf(withNew(entered.cookie), proof)
  await access.check('mine', { owner })
  expect(await owners.enter(withNew(entered.cookie), proof)).toEqual(entered)
  // A tab of the same browser that still has the old cookie alone.
  expect(await owners.enter(withOld('old-cookie'), proof)).toEqual(entered)
})

// Checked: if each proof replaces the one before, all five are its owner.
it('of several who show an old cookie, one is its owner from then on, and the others are nobody', async () => {
  await access.open('planted', { owner: 'old-cookie' })
  const proofs = Array.from({ length: 5 }, () => secret())
  const entered = await Promise.all(proofs.map((proof) => owners.enter(withOld('old-cookie'), proof)))
  expect(entered.filter(({ isKnown }) => isKnown)).toHaveLength(1)
  for (const [at, { isKnown }] of entered.entries()) {
    const asked = owners.ownerOf(withNew('old-cookie'), proofs[at])
    if (isKnown) expect(await asked).toBe('old-cookie')
    else await expect(asked).rejects.toMatchObject({ code: 'owner_unproven' })
  }
})

// Checked: if the tokens stay valid, the attacker's token still opens the session.
it('an attacker who planted an old cookie can no longer open its sessions', async () => {
  const { token } = await access.open('planted', { owner: 'evil' }, { wantsToken: true })
  await access.check('planted', { token })
  await owners.enter(withOld('evil'), secret())
  await expect(access.check('planted', { token })).rejects.toMatchObject({ code: 'forbidden' })
  expect(revoked).toEqual(['planted'])
})

it('a cookie that was made up, or is of another page, makes a new owner', async () => {
  const [mine, other] = [secret(), secret()]
  const { cookie } = await owners.enter({ host }, mine)
  for (const headers of [withOld('made-up'), withNew('made-up'), withNew(cookie), withOld(cookie)]) {
    const entered = await owners.enter(headers, other)
    expect(entered.isKnown).toBe(false)
    expect(headers.cookie).not.toContain(entered.cookie)
  }
  expect(await owners.ownerOf(withNew(cookie), mine)).toBe(cookie)
  expect(await owners.ownerOf(withNew(cookie), undefined)).toBeUndefined()
  await expect(owners.ownerOf({ host }, mine)).rejects.toMatchObject({ code: 'owner_unproven' })
  const two = { host, cookie: `mcpo_owner_3000=${cookie}; mcpo_owner_3000=${cookie}` }
  await expect(owners.ownerOf(two, undefined)).rejects.toMatchObject({ code: 'two_owner_cookies' })
  await expect(owners.enter(two, mine)).rejects.toMatchObject({ code: 'two_owner_cookies' })
  const twoOld = { host, cookie: 'mcpo_owner=a; mcpo_owner=b' }
  await expect(owners.enter(twoOld, mine)).rejects.toMatchObject({ code: 'two_owner_cookies' })
})
