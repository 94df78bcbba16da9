"""Let changed code have the digest of the unchanged: no test shall notice a mutant by the digest of its fit."""

import os
from pathlib import Path

if "CAPPLAN_UNCHANGED" in os.environ:
    from capplan.models.code_digest import code_digest

    code_digest.__wrapped__.__kwdefaults__.update(package=Path(os.environ["CAPPLAN_UNCHANGED"]))  # type: ignore[union-attr]  # it has defaults
