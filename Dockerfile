# The proxy and its operator's tools: docker build -t redis-to-keydb .
#
#   docker run --read-only --cap-drop all -v ./plan:/etc/shadow-proxy:ro -v state:/var/lib/shadow-proxy \
#     redis-to-keydb --plan /etc/shadow-proxy/migration.yaml
#
# It adds less than 50 MB to its base. Pin the base by the digest that you have checked: --build-arg BASE=node:24-slim@sha256:…
ARG BASE=node:24-slim

FROM ${BASE} AS build
WORKDIR /kit
# A C compiler, for the native module.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund
COPY . .
RUN npm run archive && mkdir /release && tar -xzf dist/redis-to-keydb.tar.gz -C /release

FROM ${BASE}
WORKDIR /kit
# A release: it has no sources, so that nothing is compiled when it starts.
COPY --from=build /release ./
RUN ln -s /kit/shadow-proxy/bin/shadow-proxy.mjs /usr/local/bin/shadow-proxy \
  && ln -s /kit/shadow-proxy/bin/shadow-compare.mjs /usr/local/bin/shadow-compare \
  && install -d -o 1000 -g 1000 /var/lib/shadow-proxy
# A number, so that Kubernetes can see that it is not root.
USER 1000:1000
ENV NODE_ENV=production HEALTH_URL=http://127.0.0.1:9400/healthz
# All that it writes: the plan's `state`. The rest may be read-only.
VOLUME /var/lib/shadow-proxy
EXPOSE 6400 9400
# Of the plan's `admin.listen`.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["node", "-e", "fetch(process.env.HEALTH_URL).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["shadow-proxy"]
CMD ["--help"]
