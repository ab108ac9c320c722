import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { packageRoot } from '../lib/files/package-root.ts'
import { systemPrompt, systemPromptFor } from './system-prompt.ts'

const plain = { hasSandbox: true, servers: [], network: 'none', ownImage: false }

describe('what the model is told', () => {
  it('names only programs that are in our image', () => {
    const [, named = ''] = /It has (.*?)\./.exec(systemPrompt(plain)) ?? []
    const programs = named.split(/, | and /)
    const packages = readFileSync(join(packageRoot(), 'images/packages.txt'), 'utf8').split('\n')
    // Node comes with the workspace server.
    expect(programs.filter((program) => program !== 'node' && !packages.includes(program))).toEqual([])
    expect(programs.length).toBeGreaterThan(5)
  })

  it('names no programs of an image that it does not know', () => {
    const told = systemPrompt({ ...plain, ownImage: true })
    expect(told).toContain('The operator chose its image')
    expect(told).not.toMatch(/python3|It has/)
  })

  it('says that tools of MCP servers act elsewhere, only if there are any', () => {
    expect(systemPrompt({ ...plain, servers: ['mail', 'git"hub'] })).toMatch(
      /MCP servers \("mail", "git\\"hub"\)\. They act outside of the container/
    )
    expect(systemPrompt(plain)).not.toContain('MCP server')
  })

  it('distinguishes a missing sandbox from missing tools', () => {
    const told = systemPrompt({ ...plain, hasSandbox: false, servers: ['mail'] })
    expect(told).toContain('No sandbox is available')
    expect(told).toContain('"mail"')
    expect(told).not.toMatch(/no tools|\/workspace/)
  })

  it('depends on the tools that are really offered', () => {
    const told = systemPromptFor([{ server: 'workspace' }, { server: 'mail' }, { server: 'mail' }], { network: 'none' })
    expect(told).toBe(systemPrompt({ ...plain, servers: ['mail'] }))
    expect(systemPromptFor([{ server: 'mail' }], { network: 'none' })).toContain('No sandbox')
  })

  it('says whether there is a network', () => {
    expect(systemPrompt(plain)).toMatch(/has no network.*nothing can be downloaded/s)
    expect(systemPrompt({ ...plain, network: 'bridge' })).not.toContain('nothing can be downloaded')
  })
})
