#!/bin/sh
# Makes the Debian package of a release: build.sh FILE. `npm run deb` builds first. Its unit is the Ansible role's, for
# one proxy with all shards of its plan, and its plan is the example with the paths of the package.
set -eu
cd "$(dirname "$0")/../.."
file=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
kit=$root/usr/lib/redis-to-keydb
install -d "$kit" "$root/usr/bin" "$root/etc/redis-to-keydb" "$root/usr/lib/systemd/system" "$root/DEBIAN"

sh packaging/archive.sh "$root/kit.tar.gz"
tar --extract --gzip --file "$root/kit.tar.gz" --directory "$kit"
rm "$root/kit.tar.gz"
for program in shadow-proxy shadow-compare; do
  ln -s "../lib/redis-to-keydb/shadow-proxy/bin/$program.mjs" "$root/usr/bin/$program"
done
install -D -m 644 LICENSE "$root/usr/share/doc/redis-to-keydb/copyright"

sed -e 's|^state: ./state |state: /var/lib/redis-to-keydb |' \
  -e 's|=\./shadow-proxy/|=/usr/lib/redis-to-keydb/shadow-proxy/|' \
  -e 's|npx --no-install \(shadow-[a-z]*\)|\1|' \
  -e 's|--plan migration.yaml|--plan /etc/redis-to-keydb/migration.yaml|' \
  migration.example.yaml > "$root/etc/redis-to-keydb/migration.yaml"
unit=$root/usr/lib/systemd/system/shadow-proxy.service
sed -e 1d \
  -e 's|^Description=.*|Description=Shadow proxy of redis-to-keydb|' \
  -e 's|^EnvironmentFile=.*|# For ${NAME} in the plan.\nEnvironmentFile=-/etc/redis-to-keydb/environment|' \
  -e 's|^WorkingDirectory=.*|WorkingDirectory=/etc/redis-to-keydb|' \
  -e 's|^ExecStart=.*|ExecStart=/usr/bin/shadow-proxy --plan /etc/redis-to-keydb/migration.yaml|' \
  -e 's|{{ shadow_proxy_state_dir }}|/var/lib/redis-to-keydb|' \
  -e 's|{{ shadow_proxy_drain_seconds }}|30|' \
  -e 's|{{ shadow_proxy_memory_max }}|1G|' \
  ansible/roles/shadow_proxy/templates/shadow-proxy.service.j2 > "$unit"
if grep -n '{[{%]' "$unit"; then
  echo 'the unit has a variable of the role that this script does not know' >&2
  exit 1
fi

echo /etc/redis-to-keydb/migration.yaml > "$root/DEBIAN/conffiles"
install -m 755 packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm "$root/DEBIAN"
version=$(node -p 'JSON.parse(fs.readFileSync("package.json")).version')
cat > "$root/DEBIAN/control" <<END
Package: redis-to-keydb
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: redis-to-keydb <root@localhost>
Depends: nodejs (>= 20.19), adduser
Section: database
Priority: optional
Description: moves a self-managed Redis to KeyDB
 A proxy writes to both servers, compares every reply, and copies the data.
 It has the programs shadow-proxy and shadow-compare.
END
chmod -R u=rwX,go=rX "$root"
dpkg-deb --build --root-owner-group "$root" "$file" > /dev/null
