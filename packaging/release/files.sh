#!/bin/sh
# Makes the files of a release: files.sh FOLDER. The folder is replaced. `npm run release:files` builds first. It needs helm.
set -eu
cd "$(dirname "$0")/../.."
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/redis-to-keydb/tools/bin
folder=$1
version=$(node -p 'JSON.parse(fs.readFileSync("package.json")).version')
rm -rf "$folder"
mkdir -p "$folder"

npm pack . ./counters --pack-destination "$folder" > /dev/null
sh packaging/archive.sh "$folder/redis-to-keydb-$version-linux-$(dpkg --print-architecture).tar.gz"
sh packaging/deb/build.sh "$folder/redis-to-keydb_${version}_$(dpkg --print-architecture).deb"
helm package charts/shadow-proxy --destination "$folder" > /dev/null
# What runs: without the packages for development.
npm sbom --omit dev --sbom-format cyclonedx > "$folder/redis-to-keydb-$version.cdx.json"
cd "$folder"
sha256sum -- * > SHA256SUMS
