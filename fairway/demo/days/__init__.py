"""Days in the life of a model service: a fleet, how much is asked for hour by hour, what happens.

`day` says what a day is, `objects` makes the objects of its fleet, and `stories` tells the days.
They are played on virtual time by whoever can run a hub, and watched: in a terminal, in tests, and
for the pictures in the guides.
"""
