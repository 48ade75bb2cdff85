"""An operation, cut somewhere: how it goes uncut, how it is cut, and to what end whoever comes next brings it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from firnline.errors import FirnlineError
from firnline.testing.faults import CountingFault, Died, Fault
from harness.operations import Operation
from harness.pictures import Picture
from harness.world import World

STRAYS = 3
"""An interrupted commit leaves its metadata file behind, and so may those that follow it."""


def lasting(picture: Picture) -> Picture:
    """Returns the picture where a plan that was saved twice counts once, and stray metadata is no difference."""
    assert picture.strays <= STRAYS
    return replace(picture, runs=tuple(sorted(set(picture.runs))), strays=0)


class Uncut:
    """The operation as it goes when nothing happens: what it leaves behind, and where it can be cut."""

    def __init__(self, operation: Operation, world: World) -> None:
        self.counting = CountingFault()
        operation.ready(world)
        operation.act(world.process(self.counting), world)
        world.check()
        self.picture = lasting(world.picture())
        self.effects = [each for each in self.counting.trace if CountingFault([each]).effects]


def cut(operation: Operation, world: World, fault: Fault) -> None:
    """Runs the operation under a fault. Whatever happens to it, no snapshot may have lost anything."""
    operation.ready(world)
    with suppress(Died, FirnlineError):
        operation.act(world.process(fault), world)
    world.check()


def brought_to_an_end(operation: Operation, world: World) -> Picture:
    """Returns what is left once another process did what a person does after a crash."""
    world.wait_for_lease()
    operation.again(world.process(), world)
    world.check()
    return lasting(world.picture())
