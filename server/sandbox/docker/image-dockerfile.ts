export interface SandboxRecipe {
  base: string
  /** Where the Node binary comes from: the build's context, or a public image. */
  nodeImage: string | null
  /** Commands get a Node of their own where the base has none. */
  readableNode: boolean
}

/**
 * One step on top of any base. The server's Node is execute-only, which keeps commands of the same user out of the
 * server's /proc entries; being unreadable it can't serve commands (it could not open /dev/stdin), hence the second copy.
 * Modes come from the tar: the classic builder knows no `COPY --chmod`.
 */
export function sandboxDockerfile({ base, nodeImage, readableNode }: SandboxRecipe): string {
  const from = nodeImage ? `COPY --from=${nodeImage} /usr/local/bin/node` : `COPY node`
  return [
    `FROM ${base}`,
    'USER root',
    ...(readableNode ? [`${nodeImage ? from : 'COPY readable-node'} /usr/local/bin/node`] : []),
    `${from} /opt/mcp/node`,
    // Already so when it comes from the context; here it would cost a second copy of the layer.
    ...(nodeImage ? ['RUN ["chmod", "0711", "/opt/mcp/node"]'] : []),
    'WORKDIR /run/mcp',
    'WORKDIR /workspace',
    'USER 10001:10001',
    // What an own image brings of these is not meant for a sandbox.
    'HEALTHCHECK NONE',
    'STOPSIGNAL SIGTERM',
    'ENTRYPOINT []',
    'CMD ["/opt/mcp/idle", "900"]',
    // Last, because it changes most: the engine keeps the steps before it.
    'COPY idle server.mjs /opt/mcp/',
    ''
  ].join('\n')
}
