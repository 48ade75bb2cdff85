"""What Java reads of many roots of one table, with the work shared and nothing left out.

Java plans every root, and reads all splits of each: a split that several roots have, with the very same files, is read
once. Its rows come out of the JVM as one text: a call for every row takes longer than to read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.paimon.gateway import Jvm
from harness.paimon.java_rows import _parsed
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import TAG, PaimonRoot
from harness.paimon.shapes import MAIN, Row

_FUNCTION = "java.util.function.Consumer"
_FILE = re.compile(r"fileName: ([^,]+),.*?level: ([0-9]+)")
Files = tuple[tuple[str, str], ...]
"""Names and levels of the files of a split, in the order in which Java reads them."""


@dataclass(frozen=True)
class View:
    """The paths of the data files that Java opens for a root, and the rows."""

    files: frozenset[str]
    rows: tuple[Row, ...]


def is_read_by_java(root: PaimonRoot) -> bool:
    """Tells whether Java finds it: it looks for tags of a branch among those of the main one."""
    return root.branch == MAIN or root.kind != TAG


@dataclass
class JavaViews:
    """Reads roots of a table, each split once."""

    jvm: Jvm
    table: JavaTable
    _rows: dict[tuple[str, Files, str], list[Row]] = field(default_factory=dict)

    @property
    def splits(self) -> int:
        return len(self._rows)

    def of(self, root: PaimonRoot) -> View:
        """Returns what Java reads. Raises Py4JJavaError where a file is missing."""
        selector = {"scan.tag-name" if root.kind == TAG else "scan.snapshot-id": root.name}
        opened = self.table.open(root.branch, selector)
        reading, files, rows = opened.newRead(), set(), []
        for split in opened.newScan().plan().splits():
            place, named = split.bucketPath(), tuple(_FILE.findall(split.dataFiles().toString()))
            known = place, named, split.deletionFiles().toString()
            if known not in self._rows:
                self._rows[known] = self._read(reading.createReader(split), opened.rowType())
            files |= {f"{place}/{name}" for name, _ in named}
            rows += self._rows[known]
        return View(frozenset(files), tuple(sorted(rows, key=repr)))

    def _read(self, reader: Any, row_type: Any) -> list[Row]:
        texts = self.jvm.java("java.util.ArrayList")()
        self._for_each.invokeWithArguments(self.jvm.list([reader, self._noting(row_type, texts)]))
        said: str = self.jvm.java("java.lang.String").join("\n", texts)
        return [_parsed(text) for text in said.split("\n") if text]

    def _noting(self, row_type: Any, texts: Any) -> Any:
        """Returns a Java function that takes a row and adds its text to a list: nothing is compiled for it."""
        handles, boolean = self.jvm.java("java.lang.invoke.MethodHandles"), self.jvm.java("java.lang.Boolean").TYPE
        text, row = self._class("java.lang.String"), self._class("org.apache.paimon.data.GenericRow")
        copying = self._type_of(row, self._class("org.apache.paimon.data.InternalRow"))
        told = handles.filterReturnValue(
            self._look.bind(self.jvm.paimon("utils.RowDataToObjectArrayConverter")(row_type), "toGenericRow", copying),
            self._look.findVirtual(row, "toString", self._type_of(text)),
        )
        adding = self._look.bind(texts, "add", self._type_of(boolean, self._class("java.lang.Object")))
        noted = handles.filterReturnValue(told, adding.asType(self._type_of(boolean, text)))
        proxies = self.jvm.java("java.lang.invoke.MethodHandleProxies")
        return proxies.asInterfaceInstance(self._class(_FUNCTION), noted)

    @cached_property
    def _for_each(self) -> Any:
        """A method of an interface's own, which the gateway does not find on a class."""
        taking = self._type_of(self.jvm.java("java.lang.Void").TYPE, self._class(_FUNCTION))
        return self._look.findVirtual(self._class("org.apache.paimon.reader.RecordReader"), "forEachRemaining", taking)

    @cached_property
    def _look(self) -> Any:
        return self.jvm.java("java.lang.invoke.MethodHandles").publicLookup()

    def _type_of(self, *classes: Any) -> Any:
        return self.jvm.java("java.lang.invoke.MethodType").methodType(*classes)

    def _class(self, name: str) -> Any:
        return self.jvm.java("java.lang.Class").forName(name)


def covering(files: Mapping[PaimonRoot, Set[str]], also: Iterable[PaimonRoot] = ()) -> list[PaimonRoot]:
    """Returns roots that have every file between them, the newest first, and `also` in any case."""
    chosen = list(also)
    found = {file for root in chosen for file in files[root]}
    for root in sorted(files, key=lambda root: (root.branch, root.kind, root.name.zfill(9)), reverse=True):
        if not files[root] <= found:
            chosen.append(root)
            found |= files[root]
    return chosen
