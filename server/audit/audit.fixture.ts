import type { Audit, CallEnd, OpenCall } from './audit.ts'

export const openCall = (end: (end: CallEnd) => void): OpenCall => Object.assign(end, { waits() {}, runs() {} })

export const noAudit: Audit = {
  begin: () => openCall(() => {}),
  async beginTogether(call) {
    return this.begin(call)
  },
  decided: () => {},
  removing: () => {},
  problem: undefined,
  close: async () => {}
}
