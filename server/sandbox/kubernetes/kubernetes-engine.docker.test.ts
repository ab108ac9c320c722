import { openTestSandboxes, whichCluster } from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { describeSandboxEngine } from '../sandbox-engine.contract.ts'

describeSandboxEngine(`kubernetes, on ${whichCluster}`, openTestSandboxes)
