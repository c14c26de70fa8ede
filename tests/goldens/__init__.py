"""What Fairway says to the outside, kept word for word: a change of it is seen as a change.

Files beside this one hold it; `make goldens` writes them again. A difference that was not meant is
a fault; one that was meant is read in the commit that brings it.
"""
