# The base of the sandbox image where a registry answers. Without one, server/sandbox/docker/image/image-base.ts makes the
# same from the same package list with mmdebstrap.
FROM debian:bookworm-slim
COPY packages.txt prepare-base.sh /tmp/
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive xargs apt-get install -y --no-install-recommends </tmp/packages.txt \
  && sh /tmp/prepare-base.sh \
  && rm -f /tmp/packages.txt /tmp/prepare-base.sh
