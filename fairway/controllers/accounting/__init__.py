"""Accounts: who used what, recorded per day, so that a report needs nothing else."""
