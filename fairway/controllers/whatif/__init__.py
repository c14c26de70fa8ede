"""What if: the plan with some changes beside the plan without them, and nothing touched.

Modules: `edits` makes the changes, `process` plans, `outcome` says which workloads the difference
affects, `whatif` answers.
"""
