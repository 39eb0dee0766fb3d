#!/usr/bin/env bash
# Starts a disk of 2006 on a Unix socket, runs an unmodified program against it, and stops. The program is the rest of the command line; it finds the
# disk's URI in NBD_URI. Without one, qemu-img measures random reads.
#
#   ./run.sh                                    a slow disk under qemu-img bench
#   DRIVE=ssd-sata-consumer ./run.sh fio --name=w --ioengine=nbd --uri='$NBD_URI' --rw=randwrite --bs=4k --size=1g --runtime=5s --time_based
#   DRIVE=./dying.toml ./run.sh nbdcopy '$NBD_URI' null:
#
# DRIVE is a name that `hoistway drives` lists, or a profile of your own; SIZE how much of it is served.
set -euo pipefail

drive=${DRIVE:-sata-7200-2006}
size=${SIZE:-8G}
if [ $# -eq 0 ]; then
    command='qemu-img bench -f raw -c 300 -d 1 -s 4096 -S 7340032 "$NBD_URI"'
else
    command="$*"
fi

# The server starts, runs the command, and leaves with its exit code when it ends.
# Its socket lies in a folder that nobody else can write to.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${HOISTWAY:-hoistway}" serve --export "=mem:$size" --drive "$drive" --socket "$folder/slow.sock" --run "$command"
