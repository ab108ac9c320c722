import { acceptChanges } from './servers-accept.ts'
import type { ServersContext } from './servers-context.ts'
import { addServer, removeServer, switchServer } from './servers-edit.ts'
import { importServers } from './servers-import.ts'
import { fetchServers, searchServers } from './servers-listing.ts'
import { loginServer, logoutServer } from './servers-login.ts'
import { storeSecret } from './servers-secret.ts'
import { listServers, showHealth, showLogs, testServers } from './servers-show.ts'
import { showUsage } from './servers-usage.ts'

export const ACTIONS: Record<string, (context: ServersContext) => Promise<number>> = {
  list: listServers,
  test: testServers,
  health: showHealth,
  logs: showLogs,
  add: addServer,
  remove: removeServer,
  enable: (context) => switchServer(context, true),
  disable: (context) => switchServer(context, false),
  import: importServers,
  fetch: fetchServers,
  search: searchServers,
  secret: storeSecret,
  login: loginServer,
  logout: logoutServer,
  accept: acceptChanges,
  usage: showUsage
}
