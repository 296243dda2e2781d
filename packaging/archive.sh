#!/bin/sh
# Packs a release of the kit: archive.sh FILE [PATH …]. It has the files of the npm package (`files` in package.json),
# the packages that they need, and the paths. The Ansible role migration_kit, the image and the Debian package install
# it. `npm run archive` builds first.
set -eu
cd "$(dirname "$0")/.."
file=$1
shift
list=$(mktemp)
trap 'rm -f "$list"' EXIT
# Each in a command of its own, so that it fails where they fail.
packed=$(npm pack --dry-run --json --ignore-scripts)
needed=$(npm ls --omit=dev --all --parseable)
{
  printf '%s' "$packed" | node -p 'JSON.parse(fs.readFileSync(0))[0].files.map(({ path }) => path).join("\n")'
  # A nested one comes with its parent.
  printf '%s\n' "$needed" | sed -n "s|^$PWD/||p" | grep -v 'node_modules/.*node_modules/'
} > "$list"
# Source maps of packages are a quarter of their size, and nothing reads them.
tar --create --gzip --file "$file" --exclude='*.map' --owner=0 --group=0 --numeric-owner --mode='u+w,go-w,a+rX' --files-from="$list" "$@"
