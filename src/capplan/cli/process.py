"""The process around a command: its streams, the signals that end it, and the entry point `capplan`.

Exit codes: 0 answered, 1 answered "no", 2 bad input, 70 defect of capplan (EX_SOFTWARE of sysexits.h), 130 interrupted,
141 closed output pipe, 143 terminated.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from typing import Any

DEFECT = 70
TRACEBACK = "CAPPLAN_TRACEBACK"
"""Environment variable with which a defect shows its traceback."""
_LONGEST = 200  # characters of an error
PATIENCE_S = 10.0  # for what runs to unwind
_ended_by: list[int] = []  # signals
_lost: list[int] = []  # signals that arrived while Python ignores exceptions, and are sent again
_AGAIN_S = 0.05


def run() -> None:
    """Run the command line of this process and exit."""
    code = _guarded()
    if _ended_by:
        code = 128 + _ended_by[0]
    sys.exit(_flushed(code))


def _guarded() -> int:
    """Run the command line and handle everything that a signal interrupts, imports included."""
    if complaint := _open_streams():
        sys.stderr.write(f"capplan: {complaint}\n")
        return 2
    _take_signals()
    try:
        return run_command()
    except BaseException as error:
        if _ended_by:
            sys.stderr.write("capplan: interrupted\n")
            return 128 + _ended_by[0]
        if not isinstance(error, Exception):
            raise
        return _defect(error)


def _defect(error: Exception) -> int:
    """Report an error that capplan should not have, in one sentence; return the exit code."""
    import traceback

    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(f"{type(error).__name__}: {error}".split())
    sys.stderr.write(
        f"capplan: this is a defect of capplan ({words[:_LONGEST]}, {last.name}, line {last.lineno}): "
        f"open an issue in its repository, with the command and the traceback that {TRACEBACK}=1 shows\n"
    )
    return DEFECT


def run_command() -> int:
    """Run the command line and return its exit code; signals are left to the caller."""
    import gc

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: more threads cost more than they save
    gc.set_threshold(
        100_000, 50, 100
    )  # a command's objects live to its end: collecting garbage took a tenth of the time
    _import_when_used("numpy.f2py", "numpy.testing", *["scipy.special"] * ("--help" in sys.argv))
    from capplan.cli.main import main
    from capplan.cli.shell.messages import ERRORS, sign_of_life

    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=ERRORS)  # type: ignore[union-attr]  # the streams of a process are files
    _take_warnings()
    arguments = sys.argv[1:]
    with sign_of_life(arguments[0] if arguments else "capplan"):
        return main(arguments)


def _import_when_used(*names: str) -> None:
    """Leave out what scipy imports for others, and what `--help` does not need: a quarter of the time of imports."""
    from importlib import import_module
    from importlib.util import LazyLoader, find_spec, module_from_spec

    for name in names:
        package, _, short_name = name.rpartition(".")
        parent, spec = import_module(package), find_spec(name)
        if spec is None or spec.loader is None:  # a later version may have none
            continue
        spec.loader = LazyLoader(spec.loader)
        sys.modules[name] = module = module_from_spec(spec)
        setattr(parent, short_name, module)
        spec.loader.exec_module(module)


def _open_streams() -> str | None:
    """Reopen streams that a shell closed (`<&-`, `2>&-`), so that no file gets their number; refuse a closed stdout."""
    closed_stdout = sys.stdout is None
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # for the whole process
    return "standard output is closed: redirect it to a file, or to /dev/null" if closed_stdout else None


def _take_signals() -> None:
    """Unwind the process on a signal that ends it, to remove unfinished files; a second signal ends it at once."""
    import signal

    def end(number: int, frame: Any) -> None:
        del frame
        _ended_by.append(number)
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    def end_again(unraisable: Any) -> None:
        """Resend a signal that arrived in a destructor or callback, where Python prints the exception and drops it."""
        if not _ended_by or unraisable.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(unraisable)
            return
        _lost.append(_ended_by[0])
        signal.signal(_ended_by[0], end)
        threading.Timer(_AGAIN_S, os.kill, (os.getpid(), _ended_by[0])).start()

    sys.unraisablehook = end_again
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and `&` set it
            signal.signal(number, end)
    if sys.platform != "win32":
        ours, its = os.pipe()
        os.set_blocking(its, False)
        signal.set_wakeup_fd(its, warn_on_full_buffer=False)
        threading.Thread(target=_end_what_does_not, args=(ours,), daemon=True).start()


def _end_what_does_not(signals: int) -> None:
    """End this process some time after a signal that it does not react to, or at the next signal."""
    number = os.read(signals, 1)[0]
    while select.select([signals], [], [], PATIENCE_S)[0] and _lost:
        os.read(signals, 1)
        _lost.pop()
    from capplan.files import remove_unfinished

    remove_unfinished()
    os.write(2, b"capplan: interrupted\n")
    os._exit(128 + number)


def _take_warnings() -> None:
    """Print capplan's notices as sentences; hide library warnings, which only developers understand."""
    import warnings

    from capplan.cli.shell.messages import say
    from capplan.errors import Notice

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        say(str(message))

    if not sys.warnoptions:
        os.environ["PYTHONWARNINGS"] = "ignore"  # of worker processes
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", Notice)
        warnings.showwarning = show


def _flushed(code: int) -> int:
    """Flush stdout; return the exit code, or that of a refusal if stdout cannot be written."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for the flush at exit
        if code == 0:
            sys.stderr.write(f"capplan: the answer cannot be written: {getattr(error, 'strerror', None) or error}\n")
            return 2
    return code
