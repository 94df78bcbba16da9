"""The customer and the author of a proposal: details from a TOML file, with a checked logo."""

from __future__ import annotations

import struct
import unicodedata
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

from capplan.errors import InputError, one_of
from capplan.models.language.document import read_toml

LONGEST = 200  # characters of a text: it stands on the first page


LARGEST_LOGO = 1_000_000  # bytes


MOST_PIXELS = 4096  # of a side


_TEXTS = ("customer", "project", "prepared_by", "contact", "date", "valid_until")
_DATES = ("date", "valid_until")


@dataclass(frozen=True)
class Details:
    """The customer and the author of a proposal, as typed: text, never markup.

    Attributes
    ----------
    customer
        Name of the customer.
    project
        Name of the project; empty if there is none.
    prepared_by
        Who makes the proposal.
    contact
        How to reach them.
    date
        Date of the proposal; empty if none is given, because no clock is read.
    valid_until
        Last day on which it can be accepted; empty if none is given.
    """

    customer: str
    project: str = ""
    prepared_by: str = ""
    contact: str = ""
    date: str = ""
    valid_until: str = ""


@dataclass(frozen=True)
class Logo:
    """A logo: a checked PNG or JPEG.

    Attributes
    ----------
    kind : str
        `png` or `jpeg`.
    content : bytes
        The file.
    width, height : int
        Its size, pixels.
    """

    kind: Literal["png", "jpeg"]
    content: bytes
    width: int
    height: int


def checked(details: Details) -> Details:
    """Return the details with surrounding blanks removed.

    Raises
    ------
    InputError
        If the customer has no name, or a text is too long or has control characters.
    """
    texts = {name: getattr(details, name).strip() for name in _TEXTS}
    for name, text in texts.items():
        if len(text) > LONGEST:
            raise InputError(f"{name} has {len(text)} characters: give at most {LONGEST}")
        if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
            raise InputError(f"{name} = {text!r} has control characters: give one line of text")
    if not texts["customer"]:
        raise InputError('a proposal names its customer: add --customer "Name", or customer = "Name" to the details')
    return replace(details, **texts)


def read_details(path: Path | None, customer: str | None) -> tuple[Details, str, Logo | None]:
    """Read the details of a proposal.

    Parameters
    ----------
    path : Path or None
        A TOML file with any of customer, project, prepared_by, contact, date, valid_until, currency and logo; none if
        left out.
    customer : str or None
        Name of the customer, instead of the one in the file.

    Returns
    -------
    tuple
        The details, the currency (empty if none is given), and the logo.

    Raises
    ------
    InputError
        If the file or the logo cannot be read, or a value breaks a rule.
    """
    content: dict[str, Any] = {} if path is None else dict(read_toml(path))
    known = (*_TEXTS, "currency", "logo")
    for key, value in content.items():
        one_of(known, key, f"{path}: {key!r} is unknown")
        if isinstance(value, date) and key in _DATES:
            content[key] = value.isoformat()[:10]
        elif not isinstance(value, str):
            raise InputError(f"{path}: {key} = {value!r} must be a text in quotes")
    if customer is not None:
        content["customer"] = customer
    details = checked(Details(**{"customer": "", **{name: content[name] for name in _TEXTS if name in content}}))
    currency = checked(Details("-", content.get("currency", ""))).project
    logo = None if path is None or "logo" not in content else read_logo(path.parent / content["logo"])
    return details, currency, logo


def read_logo(path: Path) -> Logo:
    """Read a logo: a local PNG or JPEG.

    Raises
    ------
    InputError
        If it cannot be read, is neither, or is too large.
    """
    try:
        if not path.is_file():
            raise InputError(f"logo {path} is not a file: give a .png or .jpg on this machine")
        if (size := path.stat().st_size) > LARGEST_LOGO:
            raise InputError(f"logo {path} has {size:,} bytes: give one of at most {LARGEST_LOGO:,}")
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"logo {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    found = _png(content) or _jpeg(content)
    if found is None:
        raise InputError(f"logo {path} is neither PNG nor JPEG: convert it")
    if not all(0 < side <= MOST_PIXELS for side in (found.width, found.height)):
        raise InputError(f"logo {path} has {found.width} x {found.height} pixels: give at most {MOST_PIXELS} a side")
    return found


def _png(content: bytes) -> Logo | None:
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or content[12:16] != b"IHDR" or len(content) < 33:
        return None
    width, height = struct.unpack(">II", content[16:24])
    return Logo("png", content, width, height)


def _jpeg(content: bytes) -> Logo | None:
    """Read the size of a JPEG from its frame header."""
    if not content.startswith(b"\xff\xd8\xff"):
        return None
    place = 2
    while place + 9 < len(content) and content[place] == 0xFF:
        marker, length = content[place + 1], int.from_bytes(content[place + 2 : place + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[place + 5 : place + 9])
            return Logo("jpeg", content, width, height)
        place += 2 + length
    return None
