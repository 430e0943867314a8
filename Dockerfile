# One image for all three processes: docker-compose.yml chooses the command, the ingress is the default.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Install scripts are left out: what they do is for development on other versions of Node.js than this one.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY shared ./shared
COPY api ./api
COPY workers ./workers
COPY console ./console
RUN npm run build

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc deploy/install-production ./
RUN ./install-production

FROM node:24-bookworm-slim AS production
# docker build --build-arg VERSION=0.1.0 --build-arg REVISION="$(git rev-parse HEAD)" .
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title=parley \
  org.opencontainers.image.description="Multi-tenant chat completions: ingress and worker" \
  org.opencontainers.image.licenses=MIT \
  org.opencontainers.image.version=$VERSION \
  org.opencontainers.image.revision=$REVISION
# Nothing is installed from here on, so no package manager of Node.js is there to be used.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn* /usr/local/bin/yarn*
ENV NODE_ENV=production REVISION=$REVISION
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/console/dist ./console/dist
RUN ln -s /app/dist/scripts/parley.js /usr/local/bin/parley && chmod +x dist/scripts/parley.js
USER node
# A container is reached from outside itself only.
ENV HOST=0.0.0.0
# Whatever starts a process of this image, with whichever command. Why: scripts/harness/program.ts.
ENV NODE_OPTIONS=--max-semi-space-size=16
ENV MALLOC_ARENA_MAX=1
ENV MALLOC_TRIM_THRESHOLD_=131072
EXPOSE 8080 8081 8082 8083 8090
# The shell asks by itself: a Node.js for each question would cost more CPU time than the idle process. With a certificate of
# its own (TLS_CERT_FILE) the ingress wants another check.
HEALTHCHECK --interval=10s --timeout=5s --retries=3 --start-period=30s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${WORKER_PORT:-${PORT:-8080}} && printf 'GET /health/ready HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && test \"$status\" = 200"]
CMD ["node", "dist/api/main.js"]
