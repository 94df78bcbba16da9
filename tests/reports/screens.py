"""What blocks look like on a screen."""

import io

from capplan.cli.shell.terminal import Screen
from capplan.reports.document import Block
from capplan.reports.screen import show


def on_screen(*blocks: Block, width: int = 80) -> str:
    """Return what a screen of this width shows, without colour."""
    screen = Screen(file=io.StringIO(), width=width)
    show(blocks, screen)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()
