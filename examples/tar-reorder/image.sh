#!/bin/sh
# Makes an image of an ext4 in use: its files were made in random order, and a third of them was replaced, three times. Needs root, ext4 tools, Python 3;
# uses a loop device.
#   ./image.sh IMAGE [FILES] [SIZE]        as ./image.sh aged.img 22500 4G
#   FRESH=1 ./image.sh ...                 the same files, written once, folder by folder
# Names, sizes and the order of their making are the same each time; where a file goes is the kernel's affair.
set -eu
image=$1 files=${2:-2500}
# A file system that is as large as its files make it, ten times over.
size=${3:-$((files * 200))K}
here=$(cd "$(dirname "$0")" && pwd)
uuid=7f2a1c3e-0d5b-4e8a-9c61-3b8f5a2d4e70
mnt=$(mktemp -d)
rm -f "$image"
truncate -s "$size" "$image"
# The seed of the hashes by which directories are ordered is fixed too.
mkfs.ext4 -q -F -b 4096 -U $uuid -E hash_seed=$uuid,lazy_itable_init=0,lazy_journal_init=0 "$image"
loop=$(losetup --find --show "$image")
trap 'umount "$mnt" 2>/dev/null || true; losetup -d "$loop"; rmdir "$mnt"' EXIT
mount -o noatime "$loop" "$mnt"
python3 "$here/tree.py" ${FRESH:+fresh-}make "$mnt" "$files"
