import { expect, it } from 'vitest'
import { withUsers } from './image-users.ts'

const range = { first: 20_000, last: 20_002 }

it('adds a line for each user id, and keeps what the image has', () => {
  const base = {
    passwd: 'root:x:0:0::/root:/bin/sh\nmine:x:20001:5::/home:/bin/sh\n',
    group: 'root:x:0:\nmine:x:20002:\n\n'
  }
  expect(withUsers(base, range)).toEqual({
    passwd: `${base.passwd}sandbox-20000:x:20000:20000::/workspace:/bin/bash\nsandbox-20002:x:20002:20002::/workspace:/bin/bash\n`,
    group: 'root:x:0:\nmine:x:20002:\nsandbox-20000:x:20000:\nsandbox-20001:x:20001:\n'
  })
})

it('makes the files where the image has none', () => {
  const { passwd, group } = withUsers({ passwd: '', group: '' }, range)
  expect([passwd.split('\n')[0], group.split('\n')[0]]).toEqual(['root:x:0:0:root:/root:/bin/bash', 'root:x:0:'])
  expect(passwd.trim().split('\n')).toHaveLength(4)
})
