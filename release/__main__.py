"""Make the files of a release in dist/release/: `just release`."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

from installations import SETTINGS, FailedError, environment, install, interpreters, long, report, run, short
from platforms import ROOT, built, library

sys.path.insert(0, str(ROOT / "build_backend"))
from kernel_backend import TARGETS

OUT = ROOT / "dist" / "release"
NATIVE = "manylinux_2_17_x86_64"  # what can be run here; the others are built, not run


def main() -> int:
    """Build, look, install, ask, list; 1 when something is wrong."""
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True).stdout:
        raise SystemExit("there are uncommitted changes: a release is built from commits")
    rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    sdist = built(None, OUT)
    wheels = {platform: built(platform, OUT) for platform in TARGETS}
    faults = []
    for platform, wheel in wheels.items():
        found = library(wheel)
        faults += [f"{wheel.name}: {text}" for text in found.faults(platform)]
        print(f"{wheel.name}: {found.format} {found.processor}, needs {', '.join(found.needs) or 'no library'}")
        print(f"  {'run below' if platform == NATIVE else 'built, not run'}")
    faults += report(short(wheels[NATIVE]))
    faults += report(long(wheels[NATIVE], sdist))
    faults += inventory(wheels[NATIVE])
    (OUT / "notes.md").write_text(_notes(), "utf-8")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(OUT.iterdir())]
    (OUT / "SHA256SUMS").write_text("\n".join(sums) + "\n", "utf-8")
    print("\n".join(sums))
    print("\n".join(faults), file=sys.stderr)
    return bool(faults)


def inventory(wheel: Path) -> list[str]:
    """Write a bill of materials, licences and known vulnerabilities of the wheel with all extras; return faults."""
    python = interpreters()["3.11"] or Path(sys.executable)
    tools = Path(sys.executable).parent
    with TemporaryDirectory() as folder:
        inside = environment(Path(folder, "venv"), python)
        install(inside, f"{wheel}[{','.join(SETTINGS['project']['optional-dependencies'])}]")
        bill = run(tools / "cyclonedx-py", "environment", "--output-reproducible", "--output-format", "JSON", inside)
        licences = ("--python", inside, "--format", "markdown", "--with-urls", "--output-file", OUT / "licences.md")
        run(tools / "pip-licenses", *licences)
        (packages,) = Path(folder, "venv").glob("lib/python*/site-packages")
        command = [tools / "pip-audit", "--path", packages, "--format", "json", "--progress-spinner", "off"]
        audit = subprocess.run(command, capture_output=True, text=True, check=False)
    (OUT / "sbom.cdx.json").write_text(json.dumps(_without_files(json.loads(bill)), indent=1) + "\n", "utf-8")
    if not audit.stdout:
        raise FailedError(f"pip-audit: {audit.stderr[-2000:]}")
    found = json.loads(audit.stdout)["dependencies"]
    audited = [each for each in found if "skip_reason" not in each]
    print(f"known vulnerabilities: {len(audited)} of {len(found)} packages are known to the service of pip-audit")
    (OUT / "audit.json").write_text(json.dumps(audited, indent=1) + "\n", "utf-8")
    return [f"{each['name']} {each['version']}: {one['id']}" for each in audited for one in each["vulns"]]


def _without_files(bill: Any) -> Any:
    """Return a bill of materials without the places of files on this machine."""
    for each in bill["components"]:
        references = each.get("externalReferences", ())
        each["externalReferences"] = [one for one in references if not one["url"].startswith("file:")]
    return bill


def _notes() -> str:
    """Return the changelog's section of this version."""
    version = SETTINGS["project"]["version"]
    _, _, found = (ROOT / "CHANGELOG.md").read_text("utf-8").partition(f"## [{version}]")
    return f"# capplan {version}{found.partition(chr(10) + '## [')[0]}"


if __name__ == "__main__":
    raise SystemExit(main())
