"""Days of a service, judged: what they cost over the least that they could have, and as pictures.

`costs` counts what a day cost, `bound` is the least with full knowledge of the day, `picture` draws
it. `python -m bench.scenarios` plays all days and writes the pictures of the guides.
"""
