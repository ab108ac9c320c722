import { expect, it, vi } from 'vitest'

vi.mock('node:os', () => ({
  homedir() {
    throw new Error('uv_os_homedir returned ENOENT')
  }
}))

it('has folders even for an unknown user without HOME', async () => {
  const { userDefaults } = await import('./user-folders.ts')
  expect(userDefaults({})).toEqual({
    MCP_CONFIG: '/.config/mcp-orchestrator/mcp.json',
    DATA_DIR: '/.local/share/mcp-orchestrator'
  })
  expect(userDefaults({ HOME: '/home/me', XDG_DATA_HOME: '/var/data' }).DATA_DIR).toBe('/var/data/mcp-orchestrator')
})
