"""Bugs planted in the core one at a time, to see that the tests notice each of them.

patches     the bugs: file, text as it is, text with the bug, what is wrong then
run         plants each in a copy of the package and runs the tests there
"""
