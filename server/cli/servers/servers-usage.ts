import { showAsData, showName } from '../../gateway/asking/show-as-data.ts'
import { chosen, print, type ServersContext } from './servers-context.ts'
import { withCore } from './servers-show.ts'

/** Shows the past requests that routing learned from, newest last. `--clear` deletes them. */
export async function showUsage(context: ServersContext): Promise<number> {
  const wanted = new Set(chosen(context).map(({ name }) => name))
  return withCore(context, async ({ router, forgetUsage }) => {
    const all = router.usage()
    if (context.flags.clear === true) {
      await forgetUsage?.()
      print(context, { forgotten: all.length }, [
        `Deleted ${all.length} past requests. A running gateway drops them when it next learns a request, or restarts.`
      ])
      return 0
    }
    // Without names, also show requests of servers that were removed, because they are still stored.
    const rows = all.filter(({ server }) => context.names.length === 0 || wanted.has(server))
    const lines = rows.map(
      ({ at, server, tool, request }) =>
        `${new Date(at).toISOString()} ${showName(server)} ${showName(tool)}: ${showAsData(request)}`
    )
    print(context, rows, lines.length > 0 ? lines : ['Routing has not learned any requests yet.'])
    return 0
  })
}
