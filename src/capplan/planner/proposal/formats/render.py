"""A proposal as the content of a file, by the ending of its name."""

from __future__ import annotations

import json
from collections.abc import Callable

from capplan.models.errors import InputError
from capplan.planner.proposal.details import Logo
from capplan.planner.proposal.proposal import Proposal

ENDINGS = (".html", ".json", ".pdf", ".xlsx")


def check_installed(ending: str) -> None:
    """Refuse a format whose libraries are not installed, before anything is computed.

    Raises
    ------
    MissingError
        If one is missing; the message says what to install.
    """
    from capplan.planner.proposal.formats.drawings import check_drawing
    from capplan.planner.proposal.formats.pdf import check_typesetting
    from capplan.planner.proposal.formats.workbook import check_workbook

    needs: dict[str, tuple[Callable[[], None], ...]] = {
        ".html": (check_drawing,),
        ".pdf": (check_typesetting, check_drawing),
        ".xlsx": (check_workbook,),
    }
    for check in needs.get(ending, ()):
        check()


def render_proposal(proposal: Proposal, ending: str, logo: Logo | None = None) -> bytes:
    """Return a proposal as the content of a file.

    Parameters
    ----------
    proposal : Proposal
        The proposal.
    ending : str
        Ending of the file's name: `.html`, `.pdf`, `.xlsx` or `.json`.
    logo : Logo, optional
        The logo of who makes it; JSON has none.

    Returns
    -------
    bytes
        The same for the same proposal.

    Raises
    ------
    InputError
        If the ending is none of these.
    MissingError
        If a library of the format is not installed.
    """
    if ending == ".json":
        return (json.dumps(proposal.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    check_installed(ending)
    if ending == ".html":
        from capplan.planner.proposal.formats.html import html

        return html(proposal, logo).encode()
    if ending == ".pdf":
        from capplan.planner.proposal.formats.pdf import pdf

        return pdf(proposal, logo)
    if ending == ".xlsx":
        from capplan.planner.proposal.formats.workbook import workbook

        return workbook(proposal, logo)
    raise InputError(f"a proposal is not written as {ending!r}: give one of {', '.join(ENDINGS)}")
