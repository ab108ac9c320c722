import type { Audit } from './audit.ts'

export const noAudit: Audit = {
  begin: () => () => {},
  decided: () => {},
  problem: undefined,
  close: async () => {}
}
