"""Looking ahead: reservations, backfill, expected starts, what could never start."""
