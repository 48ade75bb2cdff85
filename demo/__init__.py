"""`make demo`: firnline's main job on a lake that is made on the spot."""
