#!/bin/sh
# Ends the hosts of one rehearsal and removes what they stood on. Runs after it, however it ended: down.sh DIRECTORY PREFIX
# Each host's file `pid` has the process of its systemd-nspawn; a process with another command line is not ours, and left alone.
directory=$1
prefix=$2

ours() { tr '\0' ' ' < "/proc/$1/cmdline" 2>/dev/null | grep -q "^systemd-nspawn .*$directory/"; }
pids=
for file in "$directory"/*/pid; do
  [ -f "$file" ] || continue
  pid=$(cat "$file")
  ours "$pid" && kill -TERM "$pid" && pids="$pids $pid"
done
waited=0
for pid in $pids; do
  while ours "$pid" && [ $waited -lt 100 ]; do sleep 0.2; waited=$((waited + 1)); done
  ours "$pid" && kill -KILL "$pid"
done

# Whatever still runs in a namespace of ours, such as a master connection of ssh.
for namespace in $(ip netns list | cut -d' ' -f1 | grep "^$prefix-"); do
  for pid in $(ip netns pids "$namespace"); do kill -KILL "$pid"; done
  ip netns del "$namespace"
done
for root in "$directory"/*/root; do
  [ -d "$root" ] || continue
  umount "$root" 2>/dev/null || umount --lazy "$root" 2>/dev/null
done
mount | grep -q " $directory/" || rm -rf -- "$directory"
