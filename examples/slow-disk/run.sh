#!/usr/bin/env bash
# Serves the model of a disk of 2006 on a Unix socket, runs an unmodified program against it, and stops. The rest of the
# command line is the program; it finds the URI of the disk in NBD_URI. The default is qemu-img with random reads.
#
#   ./run.sh                                    a slow disk under qemu-img bench
#   DRIVE=ssd-sata-consumer ./run.sh fio --name=w --ioengine=nbd --uri='$NBD_URI' --rw=randwrite --bs=4k --size=1g --runtime=5s --time_based
#   DRIVE=./dying.toml ./run.sh nbdcopy '$NBD_URI' null:
#
# DRIVE is a name from `hoistway drives` or a drive file; SIZE is the size of the export.
set -euo pipefail

drive=${DRIVE:-sata-7200-2006}
size=${SIZE:-8G}
if [ $# -eq 0 ]; then
    command='qemu-img bench -f raw -c 300 -d 1 -s 4096 -S 7340032 "$NBD_URI"'
else
    command="$*"
fi

# The server runs the command and exits with its exit code.
# The socket is in a directory that only this user can write to.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${HOISTWAY:-hoistway}" serve --export "=mem:$size" --drive "$drive" --socket "$folder/slow.sock" --run "$command"
