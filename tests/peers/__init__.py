"""Real peers, outside the ordinary run of the tests: Kueue, Karmada, OCM, Volcano, JobSet.

`make peers` builds each from its Go module, starts it on a real control plane, gives it small
scenarios, and records what it decided. The tests of this folder replay those recordings: they give
our core the same input and compare the decision. They need none of the programs, and are part of
`make test`; what needs the programs is in modules that pytest does not collect.
"""
