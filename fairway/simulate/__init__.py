"""Simulation of decisions: what a fleet comes to if plans are carried out one after the other.

    course    plans on virtual time, until nothing is left to do

It imports the core, and nothing else of ours.
"""
