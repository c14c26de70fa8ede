"""What if: the plan with some changes beside the plan without them, and nothing touched.

Modules: `edits` makes the changes, `process` plans, `outcome` tells whom the difference touches,
`whatif` answers.
"""
