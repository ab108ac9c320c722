import { splitCommand } from '../../contract/servers/servers.ts'

export interface ServerFormFields {
  name: string
  kind: 'local' | 'remote'
  command: string
  args: string
  isSandboxed: boolean
  url: string
  values: string
  description: string
}

function emptyForm(): ServerFormFields {
  return { name: '', kind: 'local', command: '', args: '', isSandboxed: false, url: '', values: '', description: '' }
}

/** Everything that a person has entered to add servers. */
export const emptyAddition = () => ({
  mode: 'paste' as 'paste' | 'form' | 'known' | 'import',
  text: '',
  form: emptyForm(),
  known: { opened: null as string | null, values: {} as Record<string, string> }
})

/** Converts the form to an entry of the registry. The server validates it. */
export function entryOf(form: ServerFormFields): Record<string, unknown> {
  const values = pairs(form.values)
  const has = Object.keys(values).length > 0
  const about = form.description.trim() === '' ? {} : { description: form.description.trim() }
  if (form.kind === 'remote') return { url: form.url.trim(), ...(has ? { headers: values } : {}), ...about }
  const split = splitCommand(form.command)
  const args = [...(split?.args ?? []), ...form.args.split('\n').filter((line) => line !== '')]
  return {
    command: split?.command ?? form.command.trim(),
    ...(args.length > 0 ? { args } : {}),
    ...(has ? { env: values } : {}),
    ...(form.isSandboxed ? { sandbox: {} } : {}),
    ...about
  }
}

/** A line without `=` is a name without a value. */
function pairs(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf('=')
      return at < 0 ? [line.trim(), ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    })
  )
}
