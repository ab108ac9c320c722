import type { ModelInfo } from '../port.ts'

export const DEMO_INFO: ModelInfo = {
  id: 'demo/demo',
  name: 'Demo (rules, no AI)',
  provider: 'demo',
  inputs: { images: false, pdfs: false }
}
