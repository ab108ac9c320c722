import { expect, it } from 'vitest'
import { AppError, operatorMessageOf } from '../../../lib/errors.ts'
import { translateEngineError } from './engine-error.ts'

const context = { address: '/var/run/docker.sock', image: 'img:1', runtime: 'runsc', network: 'inner' }
const failed = (message: string, code?: string) => Object.assign(new Error(message), code ? { code } : {})

it.each([
  [failed('connect ECONNREFUSED /var/run/docker.sock', 'ECONNREFUSED'), 'engine_unavailable', 'ask the operator'],
  [failed('connect ENOENT /var/run/docker.sock', 'ENOENT'), 'engine_unavailable', 'start Docker'],
  [failed('', 'ECONNREFUSED'), 'engine_unavailable', 'start Docker'],
  [failed('socket hang up', 'ECONNRESET'), 'engine_unavailable', 'start Docker'],
  [failed('connect EACCES /var/run/docker.sock', 'EACCES'), 'engine_forbidden', 'docker group'],
  [failed('(HTTP code 404) no such container - No such image: img:1 '), 'image_missing', 'img:1'],
  [failed('(HTTP code 400) bad parameter - Unknown runtime specified runsc '), 'runtime_missing', 'SANDBOX_RUNTIME'],
  [failed('(HTTP code 400) unexpected - unknown or invalid runtime name: runsc '), 'runtime_missing', 'runsc'],
  [failed('(HTTP code 404) no such container - network inner not found '), 'network_missing', 'SANDBOX_NETWORK'],
  [
    failed(
      '(HTTP code 500) server error - seccomp is not enabled in your kernel, cannot run a custom seccomp profile '
    ),
    'seccomp_unavailable',
    'runsc'
  ],
  [
    failed(
      '(HTTP code 500) server error - error mounting "tmpfs" to rootfs at "/workspace": mount tmpfs:/workspace, data: uid=70011,gid=70011,mode=0700: invalid argument: unknown '
    ),
    'uid_unmapped',
    'SANDBOX_UIDS'
  ],
  [
    failed('(HTTP code 500) server error - mkdir /var/lib/docker/x: no space left on device '),
    'engine_full',
    'no space'
  ],
  [failed('(HTTP code 500) server error - fork/exec: cannot allocate memory '), 'engine_full', 'no space'],
  [failed('(HTTP code 404) no such container - No such container: abc '), 'container_gone', 'no longer exists'],
  [
    failed('(HTTP code 409) x - Container abc is paused, unpause the container before exec '),
    'container_paused',
    'paused'
  ],
  [failed('(HTTP code 409) x - Container abc is not running '), 'container_not_running', 'ended'],
  [failed('something new'), 'engine_error', 'something new']
])('translates %s', (error, code, words) => {
  const translated = translateEngineError(error, 'create a container', context)
  expect(translated).toMatchObject({ code, cause: error })
  expect(translated.message).toContain(words)
})

it('passes our own errors on', () => {
  const own = new AppError('timeout', 'engine_timeout', 'x')
  expect(translateEngineError(own, 'x', context)).toBe(own)
})

it('says what the engine said in its own words, without those of the client library', () => {
  const error = failed('(HTTP code 500) server error - Cannot pause container abc: OCI runtime pause failed')
  const { code, message } = translateEngineError(error, 'pause a container', context)
  expect([code, message]).toEqual([
    'engine_error',
    'The container engine failed to pause a container: Cannot pause container abc: OCI runtime pause failed'
  ])
})

it('tells operators the address, and nobody else', () => {
  const error = translateEngineError(failed('connect ENOENT /var/run/docker.sock', 'ENOENT'), 'answer', context)
  expect(error.message).not.toContain('/var/run')
  expect(operatorMessageOf(error)).toContain('at /var/run/docker.sock; in a checkout, `npm run setup`')
})
