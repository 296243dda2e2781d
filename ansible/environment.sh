#!/bin/sh
# Prints the directory of Ansible's programs, as requirements.txt names them: a virtual environment outside the repository, made where
# it is not there. ANSIBLE_ENVIRONMENT names one that is.
set -eu
if [ -n "${ANSIBLE_ENVIRONMENT:-}" ]; then
  echo "$ANSIBLE_ENVIRONMENT/bin"
  exit
fi
requirements=$(dirname "$0")/requirements.txt
version=$(sha256sum "$requirements" | cut -c1-12)
environment=${XDG_CACHE_HOME:-$HOME/.cache}/redis-to-keydb/ansible-$version
mkdir -p "$(dirname "$environment")"
# Two at once would remove what the other has begun.
exec 9>"$environment.lock"
if command -v flock >/dev/null; then flock 9; fi
if [ ! -e "$environment/complete" ]; then
  echo "Making Ansible's environment in $environment: once, with pip …" >&2
  rm -rf "$environment"
  python3 -m venv "$environment" >&2
  "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" >&2
  touch "$environment/complete"
fi
echo "$environment/bin"
