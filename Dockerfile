# The proxy and its operator's tools: docker build -t redis-to-keydb .
FROM node:20-slim AS build
WORKDIR /kit
# A C compiler, for the native module.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run archive && mkdir /release && tar -xzf dist/redis-to-keydb.tar.gz -C /release

FROM node:20-slim
WORKDIR /kit
# A release: it has no sources, so that nothing is compiled when it starts.
COPY --from=build /release ./
RUN ln -s /kit/shadow-proxy/bin/shadow-proxy.mjs /usr/local/bin/shadow-proxy \
  && ln -s /kit/shadow-proxy/bin/shadow-compare.mjs /usr/local/bin/shadow-compare \
  && install -d -o node -g node /var/lib/shadow-proxy
USER node
EXPOSE 6400 9400
ENTRYPOINT ["shadow-proxy"]
CMD ["--help"]
