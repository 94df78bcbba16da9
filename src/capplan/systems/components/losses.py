"""Losses of Cassandra nodes and data centres: which consistency levels survive them, and what is left of the layout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.ensemble import Places
from capplan.layout.situations import DC, Loss, Remainder
from capplan.layout.solution import Solution
from capplan.layout.uncertainty import Offset
from capplan.models.cassandra.consistency import always_found, answers, available, lower_levels
from capplan.models.language.parameter import Values
from capplan.models.language.per_dc import proportions
from capplan.models.language.scenario import changed
from capplan.systems.components.data_centres import ClusterScenario

NODE = "node"
C = TypeVar("C", bound=ClusterScenario)


def without_machines(
    case: Case[Any], losses: Sequence[Loss], word: str, field: str, assumed: str
) -> tuple[Remainder, ...]:
    """Return what remains without some of the machines that a field of the scenario counts, by default one."""

    def without(count: int) -> Remainder:
        name, number = f"{count} {word}{'s' * (count > 1)}", getattr(case.scenario, field)
        if count >= number:
            why = f"no other {word} is left" if number > 1 else f"it is the only {word}"
            return Remainder(name=name, lost={word: count}, assumed=why, solved=None)
        solved = partial(case.system.solution, changed(case.scenario, **{field: number - count}))
        return Remainder(name=name, lost={word: count}, assumed=assumed, solved=solved)

    return tuple(without(loss.counts[word]) for loss in losses or (Loss({word: 1}),))


@dataclass(frozen=True)
class Lost:
    """What is lost at once.

    Attributes
    ----------
    dcs
        The lost data centres, from 0.
    counts
        How many machines of each kind every other data centre loses, and how many data centres, as asked.
    named
        Whether it matters which data centres they are.
    """

    dcs: tuple[int, ...]
    counts: Mapping[str, int]
    named: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the lost data centres where they matter."""
        return tuple(f"dc{dc + 1}" for dc in self.dcs) if self.named else ()


class ClusterLosses(ABC, Generic[C]):
    """What losses leave of a layout; each system says how what is left is analysed.

    Survivors take over all clients. Hints for the lost replicas are not modelled. Of unequal data centres, those are
    lost whose loss leaves the lowest capacity, one after the other.

    Attributes
    ----------
    words : mapping of str
        Kinds of machines in words, singular.
    nothing_left : str
        What is said where no data centre can serve.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    """

    words: ClassVar[Mapping[str, str]] = {NODE: "node"}
    nothing_left: ClassVar[str] = "no Cassandra node is left"

    def __init__(self, case: Case[C]) -> None:
        self.case, self.scenario = case, case.scenario

    @abstractmethod
    def left(self, survived: C, lost: Lost, every: Values, values: Values, place: Places | None) -> Solution:
        """Analyse what is left of a layout; `every` has the values of all draws, `values` those of the solved ones."""

    def offset(self, survived: C, lost: Lost) -> Callable[[Values], Offset] | None:
        """Return the part of latencies that the model error does not cover, as `Remainder.offset`; none by default."""
        del survived, lost
        return None

    def machines_by_dc(self, kind: str) -> tuple[int, ...]:
        """Return the machines of a kind in each data centre (dcs,)."""
        del kind
        return self.scenario.nodes_by_dc()

    def remainders(self, losses: Sequence[Loss]) -> tuple[Remainder, ...]:
        """Return what each loss leaves, and once more with lower levels if the given levels fail.

        If there are no losses: one machine of each kind, one data centre, and two of three or more data centres.
        """
        usual = [Loss({kind: 1}) for kind in self.words if max(self.machines_by_dc(kind)) > 1]
        usual += [Loss({DC: count}) for count in (1, 2) if count < self.scenario.dcs]
        return tuple(left for loss in losses or usual for left in self._remainders(self._worst(loss)))

    def down(self, lost: Lost, kind: str = NODE) -> tuple[int, ...]:
        """Return the number of lost machines of a kind in each data centre (dcs,)."""
        machines = enumerate(self.machines_by_dc(kind))
        return tuple(count if dc in lost.dcs else min(lost.counts.get(kind, 0), count) for dc, count in machines)

    def serving(self, lost: Lost) -> dict[int, float]:
        """Return the data centres that serve after a loss, with their shares of all clients."""
        alive = set(range(self.scenario.dcs))
        for kind in self.words:
            machines, down = self.machines_by_dc(kind), self.down(lost, kind)
            alive &= {dc for dc, count in enumerate(machines) if count > down[dc]}
        return proportions(self.scenario.shares_by_dc(), sorted(alive)) if alive else {}

    def _alive_replicas(self, lost: Lost) -> tuple[int, ...]:
        """Return the live replicas by data centre of the row that has lost the most."""
        nodes = lost.counts.get(NODE, 0)
        return tuple(
            0 if dc in lost.dcs else max(replicas - nodes, 0) for dc, replicas in enumerate(self.scenario.rf_by_dc())
        )

    def _met(self, lost: Lost, level: str) -> bool:
        """Whether a level is met in every data centre that has clients after the loss."""
        replicas, alive, serving = self.scenario.rf_by_dc(), self._alive_replicas(lost), self.serving(lost)
        return bool(serving) and all(available(level, replicas, alive, dc) for dc in serving)

    def _worst(self, loss: Loss) -> Lost:
        """Return a loss with its data centres: one after the other that leaves the least, of equal ones the last."""
        count, rest = loss.counts.get(DC, 0), [dc for dc in range(self.scenario.dcs) if dc not in loss.dcs]

        def lost(more: tuple[int, ...], named: bool) -> Lost:
            return Lost(tuple(sorted((*loss.dcs, *more))), loss.counts, named)

        if not count or not self.scenario.unequal:
            return lost(tuple(rest[len(rest) - count :]), bool(loss.dcs))
        values, chosen = self.case.system.median_values(self.case.fitted, self.scenario), tuple[int, ...]()
        for _ in range(count):
            every = [lost((*chosen, dc), True) for dc in rest if dc not in chosen]
            worst = min(every, key=lambda each: self._rank(values, each))
            chosen = tuple(dc for dc in worst.dcs if dc not in loss.dcs)
        return lost(chosen, True)

    def _rank(self, values: Values, lost: Lost) -> tuple[bool, float]:
        """Order losses: those that no level of the scenario survives first, then by the capacity that is left."""
        survived = self._survived(lost)
        if survived is None:
            return False, 0.0
        return survived == self.scenario, float(self.left(survived, lost, values, values, None).capacity[0])

    def _survived(self, lost: Lost) -> C | None:
        """Return the layout with the least lowering of its levels that survives a loss; None if no level does."""
        fields = {}
        for operation, asked in self.scenario.levels().items():
            met = (level for level in (asked, *lower_levels(asked)) if self._met(lost, level))
            fields[f"consistency_{operation}"] = next(met, None)
        if None in fields.values():
            return None
        try:
            return changed(self.scenario, **fields)
        except InputError:
            return None

    def _remainders(self, lost: Lost) -> Iterator[Remainder]:
        survived = self._survived(lost)
        if survived == self.scenario:
            levels = ", ".join(f"{operation}s {level}" for operation, level in self.scenario.levels().items())
            yield self._remainder(lost, levels, survived)
            return
        yield self._remainder(lost, self._why_unavailable(lost), None)
        if survived is not None:
            lowered = self._lowered(survived)
            words = ", ".join(f"{operation}s at {level}" for operation, level in lowered.items())
            yield self._remainder(lost, words, survived, self._cost(lost, survived, list(lowered)))

    def _remainder(self, lost: Lost, assumed: str, survived: C | None, cost: str = "") -> Remainder:
        solved = None
        if survived is not None:
            every = self.case.system.values(self.case.fitted, self.scenario)
            solved = partial(self.left, survived, lost, every)
        return Remainder(
            name=self._in_words(lost),
            lost={**lost.counts, **({DC: len(lost.dcs)} if lost.dcs else {})},
            lost_dcs=lost.names,
            assumed=assumed,
            solved=solved,
            offset=None if survived is None else self.offset(survived, lost),
            lowered={} if survived is None else self._lowered(survived),
            cost=cost,
            down=self.down(lost),
        )

    def _in_words(self, lost: Lost) -> str:
        each = "/DC" if self.scenario.dcs > 1 else ""
        dcs = f"{len(lost.dcs)} DC{'s' * (len(lost.dcs) > 1)}" if lost.dcs else ""
        names = ",".join(lost.names)
        if names:
            dcs = f"{dcs} ({names})" if lost.counts.get(DC) else names
        machines = [(lost.counts.get(kind, 0), word) for kind, word in self.words.items()]
        parts = [f"{count} {word}{'s' * (count > 1)}{each}" for count, word in machines if count]
        return "+".join([dcs] * bool(dcs) + parts)

    def _why_unavailable(self, lost: Lost) -> str:
        if not self.serving(lost):
            return self.nothing_left
        failing = dict.fromkeys(level for level in self.scenario.levels().values() if not self._met(lost, level))
        return f"unavailable at {' and '.join(failing)}"

    def _lowered(self, survived: C) -> dict[str, str]:
        """Return the levels that are lower than asked, by operation."""
        asked = self.scenario.levels()
        return {operation: level for operation, level in survived.levels().items() if level != asked[operation]}

    def _cost(self, lost: Lost, survived: C, lowered: Sequence[str]) -> str:
        """Say how many replicas answer a lower level, and whether reads find what is written from now on."""
        serving, replicas = self.serving(lost), self.scenario.rf_by_dc()
        parts = []
        for operation in lowered:
            verb = "confirmed" if operation == "write" else "read"
            before, after = (
                min(answers(each.levels()[operation], replicas, dc) for dc in serving)
                for each in (self.scenario, survived)
            )
            parts.append(f"{verb} by {after} replica{'s' * (after > 1)}, not {before}")
        if len(self.scenario.levels()) > 1:
            reads, writes, alive = survived.consistency_read, survived.consistency_write, self._alive_replicas(lost)
            found = all(
                always_found(reads, writes, replicas, alive, one, other) for one in serving for other in serving
            )
            written = "them" if lowered == ["write"] else "what is written"
            parts.append(f"reads {'still find' if found else 'may miss'} {written}")
        return "; ".join(parts)
