import type { ServerTarget } from '../../../contract/servers/servers.ts'

/** Everything about an entry that a person must see before they accept it, besides its command or address. */
export function describeTargetLines({ cwd, env, headers, sandbox, approval, alternatives }: ServerTarget): string[] {
  const values = [...env, ...headers].map((value) => `${value.name}=${value.placeholder ?? value.value ?? '•••'}`)
  const rules = Object.entries(approval).map(([glob, rule]) => `${glob} ${rule}`)
  return [
    ...(cwd === null ? [] : [`in ${cwd}`]),
    ...values.map((value) => `${env.length > 0 ? 'variable' : 'header'}: ${value}`),
    ...(sandbox === null ? [] : [`sandbox: image ${sandbox.image ?? 'of the sandbox'}, network ${sandbox.network}`]),
    ...(sandbox?.folders ?? []).map((folder) => `sandbox: can read ${folder}`),
    ...(alternatives.length === 0 ? [] : [`when it fails, its calls go to: ${alternatives.join(', ')}`]),
    ...(rules.length === 0 ? [] : [`approval: ${rules.join(', ')}`])
  ]
}
