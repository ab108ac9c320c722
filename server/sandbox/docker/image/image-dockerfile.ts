export interface SandboxRecipe {
  base: string
  /** Where the Node binary comes from: the build's context, or a public image. */
  nodeImage: string | null
  /** Commands get our Node as `node` where the base has none. */
  linkNode: boolean
  /** There is a kernel probe for the engine's architecture. */
  probe: boolean
}

/**
 * One step on top of any base. The server's Node is execute-only, which keeps commands of the same user out of the
 * server's /proc entries. Such a file can't serve commands (it could not open /dev/stdin), nor run at all under gVisor:
 * hence the second copy. Modes come from the tar, because the classic builder knows no `COPY --chmod`.
 */
export function sandboxDockerfile({ base, nodeImage, linkNode, probe }: SandboxRecipe): string {
  const fromImage = `COPY --from=${nodeImage} /usr/local/bin/node`
  const node = nodeImage
    ? [`${fromImage} /opt/mcp/bin/node`, `${fromImage} /opt/mcp/node`, 'RUN ["chmod", "0711", "/opt/mcp/node"]']
    : ['COPY readable-node /opt/mcp/bin/node', 'COPY node /opt/mcp/node']
  return [
    `FROM ${base}`,
    'USER root',
    ...node,
    ...(linkNode ? ['COPY link/ /usr/local/bin/'] : []),
    'COPY passwd group /etc/',
    'WORKDIR /run/mcp',
    'WORKDIR /workspace',
    'USER 10001:10001',
    // What an own image brings of these is not meant for a sandbox.
    'HEALTHCHECK NONE',
    'STOPSIGNAL SIGTERM',
    'ENTRYPOINT []',
    'CMD ["/opt/mcp/idle", "900"]',
    // Last, because it changes most: the engine keeps the steps before it.
    `COPY idle ${probe ? 'kernel-probe ' : ''}server.mjs /opt/mcp/`,
    ''
  ].join('\n')
}
