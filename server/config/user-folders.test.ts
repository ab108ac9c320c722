import { expect, it } from 'vitest'
import { userDefaults, userHome } from './user-folders.ts'

it('has folders even for an unknown user without HOME', () => {
  const unknown = () => {
    throw new Error('uv_os_homedir returned ENOENT')
  }
  expect(userHome({}, unknown)).toBe('/')
  expect(userDefaults({ HOME: '/' })).toEqual({
    MCP_CONFIG: '/.config/mcp-orchestrator/mcp.json',
    DATA_DIR: '/.local/share/mcp-orchestrator'
  })
  expect(userDefaults({ HOME: '/home/me', XDG_DATA_HOME: '/var/data' }).DATA_DIR).toBe('/var/data/mcp-orchestrator')
})
