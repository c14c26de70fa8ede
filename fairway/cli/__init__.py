"""The `fairway` command: parse, call the client, render.

One module for each family of commands; `render_*` modules turn answers into text and call nothing
else. This room knows `fairway.client`, the types of `fairway.api`, and what single commands need
from other rooms. Only `up`, `agent` and `demo` import the composition root, and only when run.
"""
