import { openTestSandboxes } from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { whichCluster } from '../../../tests/fixtures/kubernetes/which-cluster.ts'
import { describeSandboxEngine } from '../sandbox-engine.contract.ts'

describeSandboxEngine(`kubernetes, on ${whichCluster(process.env)}`, openTestSandboxes)
