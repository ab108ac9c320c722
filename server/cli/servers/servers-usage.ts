import { showAsData, showName } from '../../gateway/asking/show-as-data.ts'
import { chosen, print, type ServersContext } from './servers-context.ts'
import { withCore } from './servers-show.ts'

/** What the router has learnt from use, newest last; with `--clear` it is forgotten. */
export async function showUsage(context: ServersContext): Promise<number> {
  const wanted = new Set(chosen(context).map(({ name }) => name))
  return withCore(context, async ({ router, forgetUsage }) => {
    const all = router.usage()
    if (context.flags.clear === true) {
      await forgetUsage?.()
      print(context, { forgotten: all.length }, [
        `Forgot ${all.length} past requests. A gateway that runs now forgets them when it next learns, or starts.`
      ])
      return 0
    }
    // Without names also those of servers that are gone: they are kept, so they are shown.
    const rows = all.filter(({ server }) => context.names.length === 0 || wanted.has(server))
    const lines = rows.map(
      ({ at, server, tool, request }) =>
        `${new Date(at).toISOString()} ${showName(server)} ${showName(tool)}: ${showAsData(request)}`
    )
    print(context, rows, lines.length > 0 ? lines : ['Nothing has been learnt from use yet.'])
    return 0
  })
}
