"""What is asked of our files and pages and needs no test: whether they fit each other, and the code.

`dev.py check` runs it: .venv/bin/python -m tools.house
"""
