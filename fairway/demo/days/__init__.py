"""Days in the life of a model service: a fleet, the demand by hour, and what happens.

`day` defines a day, `objects` makes the objects of its fleet, and `stories` has the days. They run
on virtual time with any hub, and are shown in a terminal, in tests, and in the pictures of the
guides.
"""
