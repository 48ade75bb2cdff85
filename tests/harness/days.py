"""Processes in a world where days pass."""

from __future__ import annotations

from firnline.testing.faults import Fault
from harness.processes import Process
from harness.world import World


def process_on_its_day(world: World, fault: Fault | None = None) -> Process:
    """Returns a process of the world, however far its clock has been moved."""
    return world.process(fault)
