"""Typed objects and their wire form.

This package knows what a Fairway object looks like: its fields, their defaults and rules, amounts,
the errors for invalid objects, and the custom resource definitions derived from all that. It has no
behaviour beyond validation and imports no other package of Fairway.
"""
