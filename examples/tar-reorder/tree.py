#!/usr/bin/env python3
"""Creates a tree of small files like one after years of use, finds its extents, and reads it in that order."""

import fcntl
import os
import random
import struct
import sys

FIEMAP = 0xC020660B  # the ioctl FS_IOC_FIEMAP


def make(root, count, aged=True):
    """Creates files in random order in directories of 150 and replaces a third of them, three times. The last file is as large as all others.
    Without `aged` the files are created once, directory by directory."""
    rng = random.Random(7)
    tree = os.path.join(root, "tree")
    names = [os.path.join(tree, f"d{i // 150:03}", f"f{i % 150:03}") for i in range(count)]
    for folder in sorted({os.path.dirname(name) for name in names}):
        os.makedirs(folder)

    def write(some):
        for at, name in enumerate(some):
            with open(name, "wb") as file:
                # Sizes like those of the Linux sources: median about 5 kB, a few of 100 kB.
                file.write(os.urandom(min(int(rng.lognormvariate(8.6, 1.2)) + 1, 200_000)))
            if at % 200 == 199:
                os.sync()

    write(rng.sample(names, count) if aged else names)
    for _ in range(3 if aged else 0):
        third = rng.sample(names, count // 3)
        for name in third:
            os.unlink(name)
        write(third)
    size = sum(os.path.getsize(name) for name in names)
    with open(os.path.join(root, "single"), "wb") as file:
        file.write(os.urandom(size))
    os.sync()


def first_block(name):
    """Where a file's first block lies, in bytes; 0 if nowhere."""
    with open(name, "rb") as file:
        buffer = bytearray(struct.pack("=QQLLLL", 0, 2**64 - 1, 0, 0, 1, 0) + bytes(56))
        fcntl.ioctl(file, FIEMAP, buffer)
    mapped, = struct.unpack_from("=L", buffer, 20)
    return struct.unpack_from("=QQ", buffer, 32)[1] if mapped else 0


def order(root):
    """Folders by inode, then files by inode, then files by their first block: two passes over the disk."""
    tree = os.path.join(root, "tree")
    folders, files = [], []
    for folder, _, names in os.walk(tree):
        folders.append((os.stat(folder).st_ino, folder))
        files += [(os.stat(name).st_ino, name) for name in (os.path.join(folder, name) for name in names)]
    for _, folder in sorted(folders):
        print("folder", os.path.relpath(folder, root))
    for _, name in sorted(files):
        print("inode", os.path.relpath(name, root))
    for _, name in sorted((first_block(name), name) for _, name in files):
        print("data", os.path.relpath(name, root))


def read(root, order):
    for line in open(order):
        what, name = line.rstrip("\n").split(" ", 1)
        name = os.path.join(root, name)
        if what == "folder":
            os.listdir(name)
        elif what == "inode":
            os.stat(name)
        else:
            with open(name, "rb", buffering=0) as file:
                while file.read(128 << 10):
                    pass


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command in ("make", "fresh-make"):
        make(arguments[0], int(arguments[1]), aged=command == "make")
    elif command == "order":
        order(arguments[0])
    elif command == "read":
        read(*arguments)
