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
# Each file in one of two processes: they mostly wait for a playbook, which uses one core.
py.test -q -p no:cacheprovider -n 2 --dist loadfile -m 'not long' test
ansible-lint --nocolor -q
echo 'ansible-lint: clean at the production profile'
