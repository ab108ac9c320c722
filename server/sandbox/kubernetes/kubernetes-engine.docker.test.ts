import { localImage, startTestCluster } from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { describeSandboxEngine } from '../sandbox-engine.contract.ts'

describeSandboxEngine('kubernetes, on a stand-in for its API server', async () => {
  const { engine: create, owner, stop } = await startTestCluster({}, await localImage())
  const engine = create()
  return {
    engine,
    owner,
    async open(epoch = 1) {
      const id = await engine.create(owner)
      return { id, connection: await engine.connect(id, epoch) }
    },
    removeAll: stop
  }
})
