/** Messages that the server sends to every page of this owner, whichever session is open. */
import type { ServerToClient } from '../contract/live.ts'
import type { PageSocket } from './socket.ts'

type News = Pick<ServerToClient, 'session:changed' | 'inbox:changed'>
type Told<N extends keyof News> = Parameters<News[N]>[0]

const listeners: { [N in keyof News]: Set<(news: Told<N>) => void> } = {
  'session:changed': new Set(),
  'inbox:changed': new Set()
}

export function bindNews(socket: PageSocket): void {
  socket.on('session:changed', (news) => {
    for (const listener of listeners['session:changed']) listener(news)
  })
  socket.on('inbox:changed', (news) => {
    for (const listener of listeners['inbox:changed']) listener(news)
  })
}

/** For stores, which live as long as the page. */
export function onNews<N extends keyof News>(name: N, listener: (news: Told<N>) => void): void {
  listeners[name].add(listener)
}
