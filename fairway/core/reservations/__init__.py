"""Reservations: places kept for gangs that wait for room, and the room that run ends will free."""
