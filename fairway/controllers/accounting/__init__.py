"""Accounts: who used what, recorded day by day, so that a report needs nothing else."""
