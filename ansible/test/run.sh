#!/bin/sh
# The checks of ansible/ that need no hosts: syntax, argument specs, the guardrail, the modules against a real server, lint at the production profile.
set -eu
cd "$(dirname "$0")/.."
PATH=$(sh environment.sh):$PATH
export PATH ANSIBLE_CONFIG="$PWD/ansible.cfg" PYTHONDONTWRITEBYTECODE=1 ANSIBLE_NOCOLOR=1
py.test -q -p no:cacheprovider test
ansible-lint --nocolor -q
echo 'ansible-lint: clean at the production profile'
