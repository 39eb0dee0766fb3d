#!/bin/sh
# Creates an image of an ext4 file system in use: files in random order, of which a third is replaced, three times. Needs root, ext4 tools, Python 3
# and a loop device.
#   ./image.sh IMAGE [FILES] [SIZE]        as ./image.sh aged.img 22500 4G
#   FRESH=1 ./image.sh ...                 the same files, written once, directory by directory
# Names, sizes and the order of creation are the same each time; the kernel chooses the position of each file.
set -eu
image=$1 files=${2:-2500}
# The file system is ten times as large as its files.
size=${3:-$((files * 200))K}
here=$(cd "$(dirname "$0")" && pwd)
uuid=7f2a1c3e-0d5b-4e8a-9c61-3b8f5a2d4e70
mnt=$(mktemp -d)
rm -f "$image"
truncate -s "$size" "$image"
# A fixed hash seed makes the directory order reproducible.
mkfs.ext4 -q -F -b 4096 -U $uuid -E hash_seed=$uuid,lazy_itable_init=0,lazy_journal_init=0 "$image"
loop=$(losetup --find --show "$image")
trap 'umount "$mnt" 2>/dev/null || true; losetup -d "$loop"; rmdir "$mnt"' EXIT
mount -o noatime "$loop" "$mnt"
python3 "$here/tree.py" ${FRESH:+fresh-}make "$mnt" "$files"
