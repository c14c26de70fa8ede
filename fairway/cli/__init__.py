"""The `fairway` command: parse, call the client, render.

One module for each family of commands; `render_*` modules turn answers into text and call
nothing. This room knows `fairway.client` and the types of `fairway.api`. Only `up` reaches the
composition root, and only when it is run.
"""
