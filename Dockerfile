# The orchestrator's image, for compose.yaml. Build it in a checkout on Linux after `npm ci`. It downloads only its base image,
# which can be any image with glibc, libstdc++ and a shell: docker build --build-arg BASE=an-image-you-have .
ARG BASE=debian:bookworm-slim
FROM ${BASE}
WORKDIR /opt/mcp-orchestrator
COPY package.json LICENSE ./
COPY node_modules/node/package.json node_modules/node/package.json
COPY node_modules/node/bin/node node_modules/node/bin/node
COPY images images
COPY bin bin
COPY dist dist
# A new volume gets the owner and mode of these folders. Only the proxy may create its socket, and only its group may use it.
RUN ["/bin/sh", "-c", "mkdir -p /data /run/engine && chown 10002:10002 /data && chmod 700 /data && chown 0:10002 /run/engine && chmod 750 /run/engine"]
ENV HOST=0.0.0.0 PORT=3000 DATA_DIR=/data MCP_CONFIG=/data/mcp.json
WORKDIR /data
USER 10002:10002
EXPOSE 3000
ENTRYPOINT ["/opt/mcp-orchestrator/bin/mcp-orchestrator"]
CMD ["serve"]
