"""Text files of any origin: what they contain is checked before they are parsed, and every refusal is one sentence."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from capplan.errors import InputError

HEAD_BYTES = 65536
LONGEST_LINE = 64 * 2**20  # characters; a report in JSON may be one line
_MOST = 0.8  # of the bytes of plain text in UTF-16 at every second place: they are null
_MAGIC = {
    b"\x1f\x8b": "compressed by gzip: unpack it first",
    b"PK\x03\x04": "a zip archive: unpack it first",
    b"BZh": "compressed by bzip2: unpack it first",
    b"\xfd7zXZ": "compressed by xz: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it first",
    b"PAR1": "a Parquet file: name it .parquet",
}
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def read_as_csv(where: str) -> Iterator[None]:
    """Refuse in one sentence a text that Python's CSV reader cannot read inside the block."""
    try:
        yield
    except csv.Error as error:
        raise InputError(f"{where} is not a CSV table: {error}") from None


@dataclass(frozen=True)
class TextFile:
    """A text file that exists, is not empty and is not binary.

    Attributes
    ----------
    path : Path
        The file.
    prefix : str
        A pattern of what is left out before each line.
    """

    path: Path
    prefix: str = ""

    def __post_init__(self) -> None:
        start = self._start
        if not start.strip(b"\x00\r\n\t \xef\xbb\xbf"):
            raise InputError(f"{self.path} is empty: it must hold the output of a tool, or a table")
        for magic, what in _MAGIC.items():
            if start.startswith(magic):
                raise InputError(f"{self.path} is {what}")
        if b"\x00" in start and self.encoding != "utf-16":
            if max(start[place::2].count(0) for place in (0, 1)) > _MOST * len(start) / 2:
                raise InputError(f"{self.path} is UTF-16 without its mark: save it as UTF-8")
            raise InputError(f"{self.path} is binary: it must be text")

    @cached_property
    def _start(self) -> bytes:
        if self.path.is_dir():
            raise InputError(f"{self.path} is a folder: give a file")
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"{self.path} is a pipe or a device: save what it has to a file first")
        try:
            with self.path.open("rb") as file:
                return file.read(HEAD_BYTES)
        except FileNotFoundError:
            raise InputError(f"{self.path} does not exist: give a file that does") from None
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from None

    @cached_property
    def encoding(self) -> str:
        """The encoding from the byte order mark at the start of the file; UTF-8 without one."""
        return next((name for mark, name in _MARKS if self._start.startswith(mark)), "utf-8")

    @cached_property
    def head(self) -> str:
        """The first 64 KiB, with plain ends of lines; bytes that are not text are replaced."""
        text = self._start.decode(self.encoding, errors="replace")
        return self._plain(text.replace("\r\n", "\n").replace("\r", "\n"))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number of each line, from 1, and its text without the end of line.

        Raises
        ------
        InputError
            At the first line that is no text.
        """
        number = 0
        try:
            with self.path.open(encoding=self.encoding, newline=None) as file:
                while line := file.readline(LONGEST_LINE):
                    number += 1
                    if "\x00" in line:
                        raise InputError(f"{self.path}, line {number} is binary: it must be text")
                    yield number, self._plain(line.rstrip("\n"))
        except UnicodeDecodeError:
            raise self._not_text() from None

    def text(self) -> str:
        """Return the whole text.

        Raises
        ------
        InputError
            If a part of it is no text.
        """
        try:
            return self._plain(self.path.read_text(encoding=self.encoding))
        except UnicodeDecodeError:
            raise self._not_text() from None

    def _plain(self, text: str) -> str:
        """Return a text without colours, and without what stands before its lines."""
        text = _COLOUR.sub("", text) if "\x1b" in text else text
        return re.sub(f"^{self.prefix}", "", text, flags=re.MULTILINE) if self.prefix else text

    def _not_text(self) -> InputError:
        """Find the first line that the encoding cannot decode; decoding in blocks does not locate it."""
        if self.encoding == "utf-16":
            return InputError(f"{self.path} is not UTF-16, which its first bytes claim: save it as UTF-8")
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode(self.encoding)
                except UnicodeDecodeError as error:
                    byte = line[error.start]
                    return InputError(
                        f"{self.path}, line {number} is not UTF-8 (byte 0x{byte:02x} at place {error.start + 1}): "
                        "save the file as UTF-8"
                    )
        return InputError(f"{self.path} ends in the middle of a character: it is cut off")
