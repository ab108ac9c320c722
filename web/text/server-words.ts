import type { ApprovalRule } from '../../contract/servers/approval-rule.ts'
import type { ServerHealth, ServerSummary, ShownTool, ShownValue } from '../../contract/servers/servers.ts'

export interface HealthWords {
  label: string
  dot: string
  chip: string
}

const HEALTH: Record<ServerHealth | 'broken', HealthWords> = {
  ok: { label: 'Healthy', dot: 'bg-ok', chip: 'bg-ok-soft text-ok' },
  failing: { label: 'Failing', dot: 'bg-danger', chip: 'bg-danger-soft text-danger' },
  unseen: { label: 'Never started', dot: 'bg-warn-line', chip: 'bg-warn-soft text-warn' },
  off: { label: 'Off', dot: 'bg-line-strong', chip: 'bg-sunken text-muted' },
  broken: { label: 'Left out', dot: 'bg-danger', chip: 'bg-danger-soft text-danger' }
}

export function healthWords(health: string): HealthWords {
  return HEALTH[health as ServerHealth] ?? HEALTH.unseen
}

export function stateWords({ state, enabled }: Pick<ServerSummary, 'state' | 'enabled'>): string {
  if (!enabled) return 'switched off'
  return { running: 'running', starting: 'starting…', stopped: 'starts when needed' }[state] ?? state
}

/** The message was written when the error occurred: the time until the next attempt has gone down since. */
export function errorWords({ message, at }: { message: string; at: number }, now: number): string {
  return message.replace(/ and will be retried in (\d+) s\b/, (_text, seconds: string) => {
    const left = Math.ceil(Number(seconds) - (now - at) / 1000)
    return left > 0 ? ` and will be retried in ${left} s` : ' and will be retried when it is needed'
  })
}

export const RULE_WORDS: Record<ApprovalRule, { label: string; inChat: string; outside: string; chip: string }> = {
  ask: {
    ...{ label: 'asks you first', inChat: 'asks you in the chat', outside: 'outside clients ask first' },
    chip: 'bg-sunken text-muted'
  },
  allow: {
    ...{ label: 'runs without asking', inChat: 'runs unasked in the chat', outside: 'outside clients run it unasked' },
    chip: 'bg-warn-soft text-warn'
  },
  deny: {
    ...{ label: 'never runs', inChat: 'never runs in the chat', outside: 'outside clients can’t run it' },
    chip: 'bg-danger-soft text-danger'
  }
}

/** Without a rule, the chat asks and outside clients don't. */
export function ruleWords({ verdict, outside }: Pick<ShownTool, 'verdict' | 'outside'>): string {
  if (verdict === outside) return RULE_WORDS[verdict].label
  return `${RULE_WORDS[verdict].inChat}; ${RULE_WORDS[outside].outside}`
}

export function valueWords({ placeholder, value }: ShownValue): string {
  return placeholder ?? value ?? 'set, looks like a secret'
}
