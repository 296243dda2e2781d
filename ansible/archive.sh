#!/bin/sh
# Packs a release of the kit for the role migration_kit: archive.sh FILE. `npm run archive` builds first.
set -eu
cd "$(dirname "$0")/.."
tar --create --gzip --file "$1" --exclude='*.tar.gz' --exclude='*.log' dist loadtest/profiles node_modules package.json runbooks shadow-proxy/bin
