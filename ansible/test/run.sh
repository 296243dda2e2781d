#!/bin/sh
# The checks of ansible/ that need no hosts: syntax, argument specs, the guardrail, the modules against a real server, lint at the production profile.
# With arguments, they are py.test's: `run.sh -m long` runs what takes minutes (nodes with TLS, uploads, several load hosts).
set -eu
cd "$(dirname "$0")/.."
PATH=$(sh environment.sh):$PATH
export PATH ANSIBLE_CONFIG="$PWD/ansible.cfg" PYTHONDONTWRITEBYTECODE=1 ANSIBLE_NOCOLOR=1
if [ $# -gt 0 ]; then
  exec py.test -q -p no:cacheprovider test "$@"
fi
# Each file in one of three processes, for a third of their time they wait; in the order of names: the longest are not left to the end.
exec py.test -q -p no:cacheprovider -n 3 --dist loadfile --no-loadscope-reorder -m 'not long' test
