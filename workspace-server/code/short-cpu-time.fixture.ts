/** A realm whose program gets only half a second of CPU time. */
import { isMainThread } from 'node:worker_threads'
import { CODE_LIMITS } from './code-protocol.ts'
import { runRealmThread } from './realm-thread.ts'
import { runCodeRealm } from './run-realm.ts'

Object.assign(CODE_LIMITS, { cpuMs: 500 })
if (isMainThread) runCodeRealm()
else runRealmThread()
