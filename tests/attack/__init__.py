"""Attacks: each test does what an attacker with some credential would do."""
