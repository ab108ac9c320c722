export interface SandboxRecipe {
  base: string
  /** A public image to copy Node from; null means that it comes from the build context. */
  nodeImage: string | null
  /** Whether to link our Node as `node`, for a base that has none. */
  linkNode: boolean
  /** Whether there is a kernel probe for the engine's architecture. */
  probe: boolean
}

/**
 * Adds one step to any base. The server's Node is execute-only, which keeps commands of the same user out of the server's /proc
 * entries. Commands can't use such a file (it could not open /dev/stdin), and it does not run under gVisor, so there is a second
 * copy. The same holds for bash, from which the first process of a container runs. File modes come from the tar, because the classic
 * builder does not know `COPY --chmod`.
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
    'RUN ["/bin/bash", "-c", "cp /bin/bash /opt/mcp/bash && chmod 0711 /opt/mcp/bash"]',
    'WORKDIR /run/mcp',
    'WORKDIR /workspace',
    'USER 10001:10001',
    // Reset what the user's own image sets here; it is not meant for a sandbox.
    'HEALTHCHECK NONE',
    'STOPSIGNAL SIGTERM',
    'ENTRYPOINT []',
    'CMD ["/opt/mcp/idle", "900"]',
    // This step is last because it changes most often: the engine caches the steps before it.
    `COPY idle ${probe ? 'kernel-probe ' : ''}server.mjs /opt/mcp/`,
    ''
  ].join('\n')
}
