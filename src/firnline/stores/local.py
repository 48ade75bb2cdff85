"""Local files, by the operating system's own calls.

obstore's LocalStore is not used: it never lists a file whose name ends in `#` and digits (its own temporary
names), fails on control characters and has no word for a doubled slash. A listing that leaves out a file,
or a file that cannot be named, is no basis for deciding what is garbage.

A write goes to a hidden name `.firnline-tmp-<32 hex digits>` beside its target, is synced, and gets its
real name in one step. Listings leave out exactly that pattern, so a half-written object never shows, and
neither does the rest of a writer that was killed.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, ELOOP, ENAMETOOLONG, ENOENT, ENOSPC, ENOTDIR, EROFS
from stat import S_ISDIR, S_ISREG
from uuid import uuid4

from firnline.errors import AlreadyExists, NoRoom, ObjectChanged, ObjectNotFound, PermanentStoreError, StoreError
from firnline.ports.stores import ObjectMeta, TaggedObject
from firnline.stores.keys import Key, object_key

Piece = bytes | memoryview

_UNFINISHED = re.compile(r"\.firnline-tmp-[0-9a-f]{32}")
_FULL = (ENOSPC, EDQUOT, EFBIG)
_NO_ROOM = "make room on that disk; `firnline resume`, or the worker's next round, goes on with what was begun"
NOTHING_THERE = (ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG)
"""What the system says of a path at which there is nothing. Whatever else it says, something may be there, unseen."""
_NO_SUCH_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class LocalFiles:
    """Every verb on local files. Holds no state."""

    def get(self, key: Key) -> bytes:
        with _reading(key.text), open(key.path, "rb", opener=_open_file) as file:
            return file.read()

    def head(self, key: Key) -> ObjectMeta:
        with _reading(key.text):
            found = os.stat(key.path)
            _refuse_no_file(found, key.path)
            return _meta(key.text, found)

    def list(self, key: Key) -> Iterator[ObjectMeta]:
        """Yields every file below the folder, hidden ones too, each named by the caller's spelling of the
        folder.

        Links to folders are not followed: what is behind one has another name already, and listing a needed
        file under a second name would make it look unneeded. A link to a file is a file.
        """
        prefix = key.text if key.text.endswith("/") else key.text + "/"
        due = [(key.path, prefix)]
        while due:
            folder, spelled = due.pop()
            files, folders = folder_contents(folder, spelled)
            due += [(os.path.join(folder, name), f"{spelled}{name}/") for name in folders]
            yield from files

    def names(self, key: Key) -> Sequence[str]:
        with _failing(key.text):
            return [each.name for each in _entries(key.path, key.text) if not _leads_to_a_folder(each)]

    def links(self, key: Key) -> Sequence[str]:
        prefix = key.text if key.text.endswith("/") else key.text + "/"
        found = [prefix.rstrip("/")] if os.path.islink(key.path) else []
        due = [(key.path, prefix)]
        while due:
            folder, spelled = due.pop()
            with _failing(spelled):
                for entry in _entries(folder, spelled, _is_no_file):
                    if entry.is_symlink():
                        found.append(spelled + entry.name)
                    else:
                        due.append((entry.path, f"{spelled}{entry.name}/"))
        return found

    def put(self, key: Key, data: bytes) -> None:
        with _writing(key.text), _written(key.path, (data,)) as unfinished:
            os.rename(unfinished, key.path)

    def put_if_absent(self, key: Key, data: bytes) -> None:
        """Writes the object unless it exists.

        A hard link fails where the name is taken, so one caller wins.
        """
        self.put_pieces_if_absent(key, (data,), lambda unfinished: None)

    def put_pieces_if_absent(self, key: Key, pieces: Iterable[Piece], check: Callable[[str], None]) -> None:
        """Writes the object unless it exists, a piece at a time. `check` is shown the finished file before it gets its
        name, and keeps it from that by raising.
        """
        with _writing(key.text), _written(key.path, pieces) as unfinished:
            check(unfinished)
            with _never_written(key.path):
                os.link(unfinished, key.path)

    def pieces(self, key: Key, size: int, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yields what is in a file, `size` bytes at a time: all of it, or from one byte to another."""
        with _reading(key.text), open(key.path, "rb", opener=_open_file) as file:
            file.seek(start)
            while piece := file.read(size if end is None else min(size, end - file.tell())):
                yield piece

    def get_tagged(self, key: Key) -> TaggedObject:
        return TaggedObject(self.get(key))

    def put_if_match(self, key: Key, data: bytes, seen: TaggedObject) -> None:
        """Writes the object where its bytes are those that were read.

        No call of the system compares and renames in one step, so writers of this kind take turns: each locks the
        folder. The system gives the lock back when a process dies. An inode and a time would not tell two versions
        apart: both are used again within a few milliseconds.
        """
        with _failing(key.text), alone_in(os.path.dirname(key.path), key.text):
            if self._unlike(key, seen):
                raise ObjectChanged(f"{key.text!r} was written by another process")
            with _written(key.path, (data,)) as unfinished:
                os.rename(unfinished, key.path)

    def _unlike(self, key: Key, seen: TaggedObject) -> bool:
        try:
            return self.get(key) != seen.data
        except ObjectNotFound:
            return True


def _open_file(path: str, flags: int) -> int:
    """Opens a file without waiting: one end of a pipe would wait for the other."""
    handle = os.open(path, flags | os.O_NONBLOCK)
    try:
        _refuse_no_file(os.fstat(handle), path)
    except OSError:
        os.close(handle)
        raise
    return handle


def _refuse_no_file(found: os.stat_result, path: str) -> None:
    """Raises IsADirectoryError for a folder, a pipe or a device, by a link too: some have no end and no size."""
    if not S_ISREG(found.st_mode):
        raise IsADirectoryError(f"{path} is no file")


@contextmanager
def alone_in(folder: str, spelled: str) -> Iterator[None]:
    """Locks a folder for the time of the block. Raises ObjectChanged if it is gone."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise ObjectChanged(f"{spelled!r} is gone with its folder") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def folder_contents(folder: str, spelled: str) -> tuple[list[ObjectMeta], list[str]]:
    """Returns the files that are directly in a folder, and the names of the folders in it.

    `spelled` is the folder as the caller names it, with a slash at its end.
    """
    files: list[ObjectMeta] = []
    folders: list[str] = []
    with _failing(spelled):
        for entry in _entries(folder, spelled):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif (stat := _stat(entry)) is not None:
                files.append(_meta(spelled + entry.name, stat))
    return files, folders


def folder_names(folder: str, spelled: str) -> list[str]:
    """Returns the names of the folders that are directly in a folder, and of links to folders."""
    with _failing(spelled):
        return [each.name for each in _entries(folder, spelled) if _leads_to_a_folder(each)]


def inner_folders(folder: str, spelled: str) -> list[str]:
    """Returns the names of the folders that are directly in a folder. Nothing of its files is kept: there may be
    millions, and one process asks that cuts them into pieces for others.
    """
    with _failing(spelled):
        return [each.name for each in _entries(folder, spelled, lambda entry: entry.is_dir(follow_symlinks=False))]


def more_names(location: str) -> int:
    """Returns how many names a file has beside this one; none where it is gone, or lies in an object store."""
    key = object_key(location)
    try:
        return os.stat(key.path).st_nlink - 1 if key.scheme == "file" else 0
    except OSError:
        return 0


def _is_no_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() or entry.is_dir(follow_symlinks=False)


def _leads_to_a_folder(entry: os.DirEntry[str]) -> bool:
    """Tells whether it is a folder, or a link to one; a link that leads in a circle is neither. Raises PermissionError
    where this user may not see what a link leads to: a folder that is left out would hide all that is in it.
    """
    if not entry.is_symlink():
        return entry.is_dir(follow_symlinks=False)
    try:
        return S_ISDIR(os.stat(entry.path).st_mode)
    except OSError as error:
        if error.errno in NOTHING_THERE:
            return False
        raise


def _entries(
    folder: str, spelled: str, wanted: Callable[[os.DirEntry[str]], bool] = lambda entry: True
) -> list[os.DirEntry[str]]:
    """Returns what a folder holds and is wanted, read to its end before anything is yielded.

    A folder that is gone holds nothing.
    """
    try:
        with os.scandir(folder) as found:
            return [entry for entry in found if _is_object_name(entry.name, spelled) and wanted(entry)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        kind = PermanentStoreError if isinstance(error, PermissionError) else StoreError
        raise kind(f"cannot list {spelled!r}: {error.strerror}") from error


def _is_object_name(name: str, spelled: str) -> bool:
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise PermanentStoreError(f"cannot list {spelled!r}: {name!r} is not UTF-8") from error
    return not (name.startswith(".firnline-tmp-") and _UNFINISHED.fullmatch(name))


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Returns the state of a file; None for one that is gone by now and for a link to a folder."""
    if entry.is_symlink():
        return None if os.path.isdir(entry.path) else _link_stat(entry)
    try:
        return entry.stat()
    except FileNotFoundError:
        return None


def _link_stat(entry: os.DirEntry[str]) -> os.stat_result:
    """Returns the state of what a link leads to, or of the link itself where it leads nowhere."""
    try:
        return entry.stat()
    except OSError:
        return entry.stat(follow_symlinks=False)


def _meta(spelled: str, stat: os.stat_result) -> ObjectMeta:
    """Returns what is known of a file; its tag changes with every write, also with one inside the same millisecond."""
    tag = f"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{stat.st_size:x}"
    return ObjectMeta(spelled, stat.st_size, written_ns(stat) // 1_000_000, tag)


def written_ns(stat: os.stat_result) -> int:
    """Returns when a file came to be as it is: the later of its own time and the kernel's, which nothing can set.

    `cp -p`, `rsync -a` and archives give a file that arrived just now the time of its original: by that alone it would
    count as old while a writer is about to commit it. A file without a time of its own stays one of unknown age.
    """
    return max(stat.st_mtime_ns, stat.st_ctime_ns) if stat.st_mtime_ns > 0 else stat.st_mtime_ns


@contextmanager
def _written(path: str, pieces: Iterable[Piece]) -> Iterator[str]:
    """Yields a hidden file beside `path` that durably holds the pieces; the caller gives it its name."""
    folder = os.path.dirname(path)
    with _never_written(path):
        _make_folder(folder)
    unfinished = os.path.join(folder, f".firnline-tmp-{uuid4().hex}")
    try:
        with _never_written(path), open(unfinished, "xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        yield unfinished
        _sync_folder(folder)
    finally:
        with suppress(OSError):  # renamed already; or a stray name that no listing shows
            os.unlink(unfinished)


def _make_folder(folder: str) -> None:
    """Makes a folder and its parents so that they survive a power cut with what will be in them."""
    if os.path.isdir(folder):
        return
    _make_folder(os.path.dirname(folder))
    with suppress(FileExistsError):
        os.mkdir(folder)
    _sync_folder(os.path.dirname(folder))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _reading(key: str) -> Iterator[None]:
    with _failing(key):
        try:
            yield
        except OSError as error:
            if isinstance(error, _NO_SUCH_FILE) or error.errno == ELOOP:
                raise ObjectNotFound(f"no object {key!r}") from error
            raise


@contextmanager
def _writing(key: str) -> Iterator[None]:
    with _failing(key):
        try:
            yield
        except FileExistsError as error:
            raise AlreadyExists(f"{key!r} exists already") from error


@contextmanager
def _never_written(path: str) -> Iterator[None]:
    """Tells the failure of a disk that takes nothing more apart, before the file has its name: it certainly is not
    there, and a command that had to find that out would call it unknown what became of its commit.
    """
    try:
        yield
    except OSError as error:
        told = f"{path!r} cannot be written: {error.strerror}"
        if error.errno == EROFS:
            raise PermanentStoreError(told, "mount it so that it can be written to") from error
        if error.errno in _FULL:
            raise NoRoom(told, _NO_ROOM) from error
        raise


@contextmanager
def _failing(key: str) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise PermanentStoreError(f"no permission for {key!r}: {error.strerror}", "ask its owner") from error
    except OSError as error:
        hint = _NO_ROOM if error.errno in _FULL else ""
        raise StoreError(f"{key!r} failed: {error.strerror or error}", hint) from error
