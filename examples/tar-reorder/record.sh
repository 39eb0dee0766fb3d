#!/bin/sh
# Records the reads of small files of a file system in use, in four orders. Needs root, ext4 tools, Python 3; uses a loop device.
#   ./record.sh FOLDER [FILES] [HOISTWAY]
set -eu
folder=$1 files=${2:-2500} hoistway=${3:-hoistway}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
mnt=$folder/mnt
mkdir -p "$mnt"
"$here/image.sh" "$folder/image" "$files"
loop=$(losetup --find --show --direct-io=on "$folder/image" 2>/dev/null || losetup --find --show "$folder/image")
trap 'umount "$mnt" 2>/dev/null || true; losetup -d "$loop"; rm -f "$folder/image"; rmdir "$mnt"' EXIT
mount "$loop" "$mnt"
python3 "$here/tree.py" order "$mnt" > "$folder/order"

record() {
    # Mounted anew, nothing of it is in memory.
    umount "$mnt"
    mount -o noatime,ro "$loop" "$mnt"
    name=$1
    shift
    "$hoistway" trace record "$loop" --per-cpu -o "$folder/$name.recorded" -- sh -c "$*"
    # What was asked for, and no more: windows of one request change no order.
    "$hoistway" trace reorder "$folder/$name.recorded" --by sector --within 1 -o "$folder/$name.bin" > /dev/null
    rm -f "$folder/$name.recorded".blktrace.*
}
record tar "cd '$mnt' && tar cf - tree | cat > /dev/null"
record blocks "python3 '$here/tree.py' read '$mnt' '$folder/order'"
record single "cat '$mnt/single' > /dev/null"
