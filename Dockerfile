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
RUN npm run build

FROM node:24-bookworm-slim AS production
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force
COPY LICENSE ./
COPY --from=build /app/dist ./dist
USER node
# A container is reached from outside itself only.
ENV HOST=0.0.0.0
# Whatever starts a process of this image, with whichever command. Why: scripts/harness/program.ts.
ENV NODE_OPTIONS=--max-semi-space-size=16
ENV MALLOC_ARENA_MAX=1
ENV MALLOC_TRIM_THRESHOLD_=131072
EXPOSE 8080 8081 8082 8090
CMD ["node", "dist/api/main.js"]
