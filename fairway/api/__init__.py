"""Typed objects and their wire form.

This room knows what a Fairway object looks like: its fields, their defaults and rules, amounts, the
errors that a wrong one earns, and the custom resource definitions derived from all that. It has no
behaviour beyond validation and imports nothing else of ours.
"""
