"""Write the proposals under docs/examples: openprovider grows to 20,000 requests per second and survives a data centre.

Run from anywhere: `uv run python docs/generate/proposals.py`. With `--check` it writes nothing, and exits with 1 if a
file is out of date. All files are compared byte by byte.
"""

from __future__ import annotations

import sys
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from pypdfium2 import PdfDocument

from capplan.cli.main import main as capplan

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
NAME = "proposal-20000-tps"
PICTURE = ROOT / "docs" / "figures" / "proposal.png"  # on the README
ENDINGS = (".html", ".json", ".pdf", ".xlsx")
QUESTION = [
    *("proposal", "openprovider", "--tps", "14000", "--slo", "acct.mean<20ms", "--survive", "dc"),
    *("--growth", "20%/y", "--years", "2"),
    *("--details", str(EXAMPLES / "proposal-details.toml"), "--prices", str(EXAMPLES / "proposal-prices.toml")),
]


@cache
def generated() -> dict[Path, bytes]:
    """Return the content of every file that this script writes.

    Raises
    ------
    RuntimeError
        If there is no proposal.
    """
    with TemporaryDirectory() as folder:
        files = [Path(folder) / f"{NAME}{ending}" for ending in ENDINGS]
        code = capplan([*QUESTION, *(word for file in files for word in ("-o", str(file)))])
        if code:
            raise RuntimeError(f"capplan proposal ended with exit code {code}")
        found = {EXAMPLES / file.name: file.read_bytes() for file in files}
        return {**found, PICTURE: first_page(found[EXAMPLES / f"{NAME}.pdf"])}


def first_page(pdf: bytes) -> bytes:
    """Return a picture (PNG) of the first page of a PDF."""
    picture = BytesIO()
    PdfDocument(pdf)[0].render(scale=1.3).to_pil().save(picture, "PNG", optimize=True)
    return picture.getvalue()


def main() -> int:
    """Write the files, or check them."""
    stale = [path for path, content in generated().items() if not path.exists() or path.read_bytes() != content]
    for path in stale:
        sys.stderr.write(f"{path.relative_to(ROOT)} was out of date\n")
        if "--check" not in sys.argv:
            path.write_bytes(generated()[path])
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
