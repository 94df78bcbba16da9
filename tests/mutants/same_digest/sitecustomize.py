"""Give changed code the digest of the unchanged code, so that no test notices a mutant by its digest."""

import os
from pathlib import Path

if "CAPPLAN_UNCHANGED" in os.environ:
    from capplan.code_digest import code_digest

    defaults = code_digest.__wrapped__.__kwdefaults__ or {}
    defaults["package"] = Path(os.environ["CAPPLAN_UNCHANGED"])
